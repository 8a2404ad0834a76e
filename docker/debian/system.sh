#!/bin/bash
# System packages, and the CUDA toolkit of Debian where one is asked for.
# Reads APT_MIRROR, CUDA and GCC, the build's arguments.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
# shellcheck source=/dev/null
. /etc/os-release
suite=$VERSION_CODENAME
certificates=/usr/local/share/ca-certificates

# A base without ca-certificates trusts nobody yet, and the mirror may have a private authority.
trust=/etc/apt/apt.conf.d/90wheelmill-ca
if compgen -G "$certificates/*.crt" >/dev/null; then
  cat "$certificates"/*.crt >/tmp/ca.pem
  [ ! -s /etc/ssl/certs/ca-certificates.crt ] || cat /etc/ssl/certs/ca-certificates.crt >>/tmp/ca.pem
  echo 'Acquire::https::CAInfo "/tmp/ca.pem";' >"$trust"
fi

components=main
[ -z "${CUDA:-}" ] || components="main contrib non-free"
if [ -n "${APT_MIRROR:-}" ]; then
  rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
  echo "deb $APT_MIRROR $suite $components" >/etc/apt/sources.list
elif [ -n "${CUDA:-}" ]; then
  sed -i "s/^\(deb .* $suite\) .*/\1 $components/" /etc/apt/sources.list 2>/dev/null || true
  sed -i "s/^Components: .*/Components: $components/" /etc/apt/sources.list.d/*.sources 2>/dev/null || true
fi

# What never gets unpacked need not be removed: static CUDA libraries but the runtime's, manuals, profilers.
cat >/etc/dpkg/dpkg.cfg.d/wheelmill <<'EXCLUDED'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/info/*
path-exclude=/usr/lib/x86_64-linux-gnu/lib*_static*.a
path-exclude=/usr/lib/x86_64-linux-gnu/libcu*.a
path-exclude=/usr/lib/x86_64-linux-gnu/libnpp*.a
path-exclude=/usr/lib/x86_64-linux-gnu/libnv*.a
path-exclude=/usr/lib/x86_64-linux-gnu/cuda-gdb/*
path-include=/usr/lib/x86_64-linux-gnu/libcudart_static.a
path-include=/usr/lib/x86_64-linux-gnu/libcudadevrt.a
EXCLUDED

packages=(ca-certificates "gcc-$GCC" "g++-$GCC" git libc6-dev make python3-dev python3-venv xz-utils)
[ -z "${CUDA:-}" ] || packages+=(nvidia-cuda-toolkit)
apt-get update
apt-get install --yes --no-install-recommends "${packages[@]}"
update-ca-certificates
if [ -n "${CUDA:-}" ]; then
  /opt/wheelmill/cuda.sh
fi
apt-get clean
rm -rf /var/lib/apt/lists/* /tmp/ca.pem "$trust" "$certificates/README.md"

# The plain names mean this compiler too, also to nvcc and to builds that do not read CXX.
for name in gcc g++ cpp; do ln --symbolic "/usr/bin/$name-$GCC" "/usr/local/bin/$name"; done
ln --symbolic gcc /usr/local/bin/cc
ln --symbolic g++ /usr/local/bin/c++
