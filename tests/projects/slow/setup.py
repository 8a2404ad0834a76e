from setuptools import Extension, setup

setup(packages=["slow"], ext_modules=[Extension("slow.answer", ["answer.cpp"], language="c++", py_limited_api=True)])
