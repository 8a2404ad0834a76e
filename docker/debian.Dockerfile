# A build image on plain Debian, for places that reach only a Debian and a PyPI mirror. It keeps the contract
# of the per-CUDA images (docs/containers.md). The context is this folder; no BuildKit is needed.
#
#   BASE_IMAGE     any Debian from bookworm on; bootstrap-debian makes one without a registry
#   APT_MIRROR     where Debian's packages come from; empty keeps the base's own sources
#   PIP_INDEX_URL  where Python's packages come from; unset is PyPI
#   TAG            the CUDA that the image is for, such as cu124
#   CUDA           the release of Debian's own nvidia-cuda-toolkit to install (bookworm 11.8, trixie 12.4);
#                  empty for none, as the toolchain of CUDA 13 is mounted at build time
#   GCC            the host compiler: within the toolkit's limit, and old enough for older distributions' libstdc++
ARG BASE_IMAGE=debian:bookworm-slim
# hadolint ignore=DL3006
FROM ${BASE_IMAGE}

ARG APT_MIRROR
ARG CUDA
ARG GCC=12

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
COPY certs/ /usr/local/share/ca-certificates/
COPY debian/ /opt/wheelmill/
# One layer: what a later one removed would still be in the image.
RUN /opt/wheelmill/system.sh
ENV CC=gcc-${GCC} \
    CXX=g++-${GCC} \
    CUDAHOSTCXX=g++-${GCC} \
    CUDA_HOME=/usr/local/cuda \
    PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    LANG=C.UTF-8

ARG PIP_INDEX_URL
COPY common/ /opt/wheelmill/
RUN /opt/wheelmill/python.sh && /opt/wheelmill/user.sh

# After the layers, which then serve every tag of the same toolkit.
ARG TAG=cu130
ARG LICENSES=BSD-3-Clause
LABEL org.opencontainers.image.title="wheelmill/${TAG}:debian" \
      org.opencontainers.image.description="Builds PyTorch extension wheels for ${TAG} on Debian" \
      org.opencontainers.image.licenses="${LICENSES}" \
      org.wheelmill.cuda="${TAG}" \
      org.wheelmill.toolkit="${CUDA:-none}" \
      org.wheelmill.gcc="${GCC}" \
      org.wheelmill.base="debian"
USER 1000
WORKDIR /project
