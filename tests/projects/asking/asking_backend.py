"""setuptools' back end, which needs one package more and says so when it is asked (PEP 517)."""

from setuptools.build_meta import *  # noqa: F403
from setuptools.build_meta import build_wheel as _build_wheel


def get_requires_for_build_wheel(config_settings=None):
    return ["ply==3.11", "torch"]


def build_wheel(directory, config_settings=None, metadata_directory=None):
    import ply

    assert ply.__version__ == "3.11"
    return _build_wheel(directory, config_settings, metadata_directory)
