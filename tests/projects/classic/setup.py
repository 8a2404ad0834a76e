from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="classic-demo",
    version="0.3",
    packages=["demo"],
    ext_modules=[CppExtension("demo._C", ["demo/ext.cpp"])],
    cmdclass={"build_ext": BuildExtension},
    install_requires=["torch", "packaging; extra == 'dev'"],
)
