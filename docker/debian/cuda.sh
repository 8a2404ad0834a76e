#!/bin/bash
# Checks which CUDA Debian brought, drops what no build needs, and lays the rest out as /usr/local/cuda.
set -euo pipefail
