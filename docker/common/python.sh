#!/bin/bash
# Debian's own Python in the manylinux images' layout, and the build tools.
set -euo pipefail
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

version=$(python3 -c 'import sys; print(f"cp{sys.version_info.major}{sys.version_info.minor}")')
home=/opt/python/$version-$version
python3 -m venv "$home"
"$home/bin/pip" install --upgrade --require-hashes --requirement /opt/wheelmill/python.txt
# cibuildwheel runs its own helpers with this name; none of them needs that very release.
[ -e /opt/python/cp39-cp39 ] || ln -s "$version-$version" /opt/python/cp39-cp39

/opt/wheelmill/tools.sh python3
