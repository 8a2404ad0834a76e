"""setuptools' back end, which calls an address first, as a build step that downloads something would."""

import socket

from setuptools.build_meta import *  # noqa: F403
from setuptools.build_meta import build_wheel as _build_wheel


def build_wheel(directory, config_settings=None, metadata_directory=None):
    host, port = open("address").read().split()
    socket.create_connection((host, int(port)), timeout=5).close()
    return _build_wheel(directory, config_settings, metadata_directory)
