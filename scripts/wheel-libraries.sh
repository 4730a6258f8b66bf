#!/usr/bin/env bash
# Build and install the libraries of the native runtime where no package has them, as in the
# images that wheels are built in: scripts/wheel-libraries.sh [PREFIX]. The sources are those of
# Debian 13. Needs curl, xz, CMake and a compiler of C and C++17.
set -euo pipefail
prefix=${1:-/usr/local}
work=${ARENITE_LIBRARIES_BUILD:-/tmp/arenite-libraries}
mirror=http://deb.debian.org/debian/pool/main

# Unpacks a source package into $work/NAME: name, version, SHA-256.
unpack() {
  local archive=$work/$1_$2.orig.tar.xz levels=1
  [ -e "$archive" ] || curl -fsSL --retry 3 -o "$archive" "$mirror/${1:0:1}/$1/${archive##*/}"
  echo "$3  $archive" | sha256sum --check --quiet
  # Most have all in one folder, XNNPACK's has none.
  [ "$(tar -tf "$archive" | grep -cx CMakeLists.txt)" = 0 ] || levels=0
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  tar -xf "$archive" -C "$work/$1" --strip-components="$levels"
}

# Configures, builds and installs what was unpacked: name, options of CMake.
install() {
  local name=$1
  shift
  cmake -S "$work/$name" -B "$work/$name-build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
  cmake --build "$work/$name-build" -j "$(nproc)"
  cmake --install "$work/$name-build"
}

mkdir -p "$work"
unpack cpuinfo 0.0~git20250327.39ea79a \
  2a10028948f7f0663c56cc34405484391ee3d7ccdf09fe51d73897937b99d9d4
unpack flatbuffers 23.5.26+dfsg \
  0d309fd2c47bbbebd450e68d1419c336d53d1b8f5ce47e1f1f7f28f452fc6f3b
unpack fp16 0.0~git20200514.4dfe081 \
  7d7782b37b74136e0e12593a2a93ccbe7db831f4374cc408e44623d9b708b54e
unpack fxdiv 0.0~git20200417.b408327 \
  7953482badaf4cb34026c3487c257b8e4ab2df061c019bd6fabbbc12ad52c44b
unpack pthreadpool 0.0~git20240616.560c60d \
  4cc3cbd933b28131d2a34edc54f76af9fb41bc490af5eae1a5bd3cd07ea90708
unpack xnnpack 0.0~git20241108.4ea82e5 \
  90bde2caef0f880f627bab0dc805a86c4b8070cd98e3243db3046ab3f3be1a99

install flatbuffers -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF
# Shared, so that one pthreadpool serves XNNPACK and the runtime.
install xnnpack -DBUILD_SHARED_LIBS=ON -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
  -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_ENABLE_KLEIDIAI=OFF \
  -DCPUINFO_SOURCE_DIR="$work/cpuinfo" -DFP16_SOURCE_DIR="$work/fp16" \
  -DFXDIV_SOURCE_DIR="$work/fxdiv" -DPTHREADPOOL_SOURCE_DIR="$work/pthreadpool"
