#!/bin/bash
# Checks which CUDA Debian brought and lays it out as NVIDIA does, in /usr/local/cuda, since that is what build
# systems look for. Debian spreads it over /usr, and `-isystem /usr/include` would break the C++ library's headers.
set -euo pipefail
home=/usr/local/cuda
libraries=/usr/lib/x86_64-linux-gnu
kit=/usr/lib/nvidia-cuda-toolkit

found=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
if [ "$found" != "$CUDA" ]; then
  echo "Debian's CUDA here is $found, not $CUDA: choose the Debian release that has $CUDA" >&2
  exit 1
fi

# The driver belongs to the machine that runs the container; libcuda's stub stays for linking.
rm -rf "${libraries:?}/nvidia/current"
find "$libraries" -maxdepth 1 -xtype l -delete

# Every file of the packages that Debian makes from NVIDIA's archive, and of CCCL's headers.
dpkg-query --show --showformat '${Package} ${source:Package}\n' |
  awk '$2 ~ /^(nvidia-cuda-toolkit|libcu\+\+|libcub|libthrust|cub|thrust|cccl|nvidia-thrust|nvidia-cccl)/ { print $1 }' |
  xargs dpkg --listfiles | sort --unique >/tmp/files

mkdir -p "$home"/{bin,include,lib64,nvvm/bin}
# nvcc resolves a link to a folder before it looks for `..`, so these folders are real and hold links.
link() { # link PATTERN FOLDER
  { grep --extended-regexp "$1" /tmp/files || true; } | while read -r file; do
    [ ! -e "$file" ] || ln --symbolic --force "$file" "$2/"
  done
}
link '^/usr/bin/[^/]+$' "$home/bin"
ln --symbolic "$kit/bin/crt" "$home/bin/crt"
# The one nvcc, as a file: CMake follows a link, and Debian's wrapper would lead it back to /usr.
rm -f /usr/bin/nvcc "$home/bin/nvcc"
mv "$kit/bin/nvcc" "$home/bin/nvcc"
link '^/usr/include/[^/]+$' "$home/include"
link "^$libraries/[^/]+\.(so|a)(\.[0-9.]+)?$" "$home/lib64"
ln --symbolic "$libraries/stubs" "$home/lib64/stubs"
ln --symbolic lib64 "$home/lib"
ln --symbolic "$kit/bin/cicc" "$home/nvvm/bin/cicc"
ln --symbolic "$kit/libdevice" "$home/nvvm/libdevice"
[ ! -e "$kit/compute-sanitizer" ] || ln --symbolic "$kit/compute-sanitizer" "$home/compute-sanitizer"
# nvcc reads the file of this name beside it; Debian's points at Debian's folders.
cat >"$home/bin/nvcc.profile" <<'PROFILE'
TOP             = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH            += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES        += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES       =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
PROFILE
printf '{"cuda": {"name": "CUDA SDK (Debian)", "version": "%s"}}\n' \
  "$(dpkg-query --show --showformat '${Version}' nvidia-cuda-toolkit | sed 's/.*~//; s/-.*//')" >"$home/version.json"
rm /tmp/files

# glibc 2.41 declares these four as well, and never throwing; CUDA before 13 does not say so, and nvcc stops.
math=/usr/include/crt/math_functions.h
if printf '2.41\n%s\n' "$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)" | sort --version-sort --check=quiet; then
  sed --in-place --regexp-extended 's/^(extern .* (sin|cos)pif?\((double|float) x\));/\1 noexcept(true);/' "$math"
  [ "$(grep --count 'noexcept(true);$' "$math")" = 4 ]
fi
