from setuptools import Extension, setup

setup(packages=[], ext_modules=[Extension("answer", ["answer.cpp"], language="c++", py_limited_api=True)])
