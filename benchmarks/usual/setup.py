from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

SOURCES = sorted(str(path) for path in Path("csrc").iterdir() if path.suffix in {".cpp", ".cu"})

setup(
    name="usual",
    version="1.0.0",
    packages=["usual"],
    python_requires=">=3.10",
    install_requires=["torch"],
    ext_modules=[
        CUDAExtension(
            "usual._C",
            SOURCES,
            # -g0: CPython's own flags hold -g, which would make the compiler slower and the wheel larger.
            extra_compile_args={"cxx": ["-O3", "-g0", "-fopenmp"], "nvcc": ["-O3", "-Xcompiler=-g0"]},
            extra_link_args=["-fopenmp"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
