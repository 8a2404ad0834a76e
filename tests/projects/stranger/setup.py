import os

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

sources = ["shift_clip/shift_clip.cpp"]
if os.environ.get("FORCE_CUDA") == "1":
    extension = CUDAExtension(
        "shift_clip._C", [*sources, "shift_clip/shift_clip_cuda.cu"], define_macros=[("WITH_CUDA", None)]
    )
else:
    extension = CppExtension("shift_clip._C", sources)

setup(
    name="shift-clip",
    version="0.1.0",
    packages=["shift_clip"],
    python_requires=">=3.10",
    install_requires=["torch"],
    ext_modules=[extension],
    cmdclass={"build_ext": BuildExtension},
)
