"""setuptools' back end, slow enough to be interrupted."""

import subprocess
from pathlib import Path

from setuptools.build_meta import *  # noqa: F403
from setuptools.build_meta import build_wheel as _build_wheel


def build_wheel(directory, config_settings=None, metadata_directory=None):
    subprocess.run(["sleep", Path("seconds").read_text().strip()], check=True)
    return _build_wheel(directory, config_settings, metadata_directory)
