#!/usr/bin/env bash
# Build and install the libraries of the native runtime where no package has them, as in the
# images that wheels are built in: scripts/wheel-libraries.sh [PREFIX]. The sources are those of
# Debian 13, which scripts/wheel-sources.sh fetched; nothing is fetched here. Needs xz, CMake and a
# compiler of C and C++17.
set -euo pipefail
prefix=${1:-/usr/local}
work=${ARENITE_LIBRARIES_BUILD:-/tmp/arenite-libraries}
here=$(cd "$(dirname "$0")" && pwd)
sources=${ARENITE_WHEEL_SOURCES:-$here/../build/wheel-sources}

# Unpacks the source package of that name into $work/NAME.
unpack() {
  local archive levels=1
  archive=$(cd "$sources" && ls "$1"_*.orig.tar.?z)
  # Most have all in one folder, XNNPACK's has none.
  [ "$(tar -tf "$sources/$archive" | grep -cx CMakeLists.txt)" = 0 ] || levels=0
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  tar -xf "$sources/$archive" -C "$work/$1" --strip-components="$levels"
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
(cd "$sources" && sha256sum --check --quiet "$here/wheel-sources.sha256")
for name in cpuinfo flatbuffers fp16 fxdiv highway pthreadpool xnnpack; do
  unpack "$name"
done

# Of Highway only the headers are used.
mkdir -p "$prefix/include"
(cd "$work/highway" && find hwy -name '*.h' -exec cp --parents -t "$prefix/include" {} +)

install flatbuffers -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF
# Shared, so that one pthreadpool serves XNNPACK and the runtime.
install xnnpack -DBUILD_SHARED_LIBS=ON -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
  -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_ENABLE_KLEIDIAI=OFF \
  -DCPUINFO_SOURCE_DIR="$work/cpuinfo" -DFP16_SOURCE_DIR="$work/fp16" \
  -DFXDIV_SOURCE_DIR="$work/fxdiv" -DPTHREADPOOL_SOURCE_DIR="$work/pthreadpool"
