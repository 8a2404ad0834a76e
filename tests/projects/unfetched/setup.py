from setuptools import Extension, setup

setup(ext_modules=[Extension("unfetched", ["tile.cpp"], language="c++")])
