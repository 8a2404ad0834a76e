#!/bin/bash
# The build user, and what cibuildwheel writes as whoever runs the container.
set -euo pipefail
useradd --create-home --uid 1000 --shell /bin/bash builder
# It unpacks the project over /project and sets that folder's own mode and time: the user must own it.
install -d -o builder -g builder -m 777 /project /output
# It writes these two in the root folder: certificates for projects that fetch, and versions of its own tools.
install -o builder -g builder -m 666 /dev/null /cibuildwheel-ca-bundle.pem
install -o builder -g builder -m 666 /dev/null /constraints.txt
