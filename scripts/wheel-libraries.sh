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
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  tar -xf "$sources/$1"_*.orig.tar.?z -C "$work/$1" --strip-components=1
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
for name in flatbuffers fxdiv highway pthreadpool; do
  unpack "$name"
done

# Of Highway only the headers are used.
mkdir -p "$prefix/include"
(cd "$work/highway" && find hwy -name '*.h' -exec cp --parents -t "$prefix/include" {} +)

install flatbuffers -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF
install pthreadpool -DPTHREADPOOL_BUILD_TESTS=OFF -DPTHREADPOOL_BUILD_BENCHMARKS=OFF \
  -DFXDIV_SOURCE_DIR="$work/fxdiv"
