#!/usr/bin/env bash
# Cross-compile the native runtime for ARM, compare its outputs under emulation with those of this
# machine, and guard the number of its instructions: scripts/test-arm.sh [PYTHON]. Skips, and says
# why, where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=build/arm

skip() {
  echo "test-arm: skipped: $1"
  exit 0
}

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip "needs Debian on x86-64"
declare -A tool=(
  [g++-aarch64-linux-gnu]=aarch64-linux-gnu-g++
  [g++-arm-linux-gnueabihf]=arm-linux-gnueabihf-g++
  [qemu-user]=qemu-aarch64
  [qemu-user-static]=qemu-aarch64-static
  [cmake]=cmake
  [flatbuffers-compiler]=flatc
)
missing=()
for package in "${!tool[@]}"; do
  command -v "${tool[$package]}" >/dev/null || missing+=("$package")
done

# The libraries of an architecture are unpacked into a folder. Installing them would remove
# this machine's own: they are not made to live side by side.
fetched() { [ -e "$work/$1/fetched" ] && [ -e "$work/$1/sysroot/usr/include/hwy" ]; }
if [ ${#missing[@]} -gt 0 ] || ! fetched arm64 || ! fetched armhf; then
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || skip "packages cannot be installed: neither root nor sudo"
    as_root="sudo"
  fi
  mkdir -p "$work/packages"
  $as_root dpkg --add-architecture arm64
  $as_root dpkg --add-architecture armhf
  # An index that cannot be renewed leaves the old one; what is really absent shows below.
  $as_root apt-get update -qq >"$work/update.log" 2>&1 || true
  if [ ${#missing[@]} -gt 0 ]; then
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      "${missing[@]}" >"$work/install.log" 2>&1 || skip "cannot install ${missing[*]}"
  fi
fi

fetch() {
  local arch=$1 xnnpack
  # Its name has the version of the interface.
  xnnpack=$(apt-cache depends "libxnnpack-dev:$arch" |
    sed -n 's/.*Depends: \(libxnnpack[^:-]*\)\(:.*\)*$/\1/p' | head -1)
  [ -n "$xnnpack" ] || skip "this Debian has no XNNPACK for $arch"
  (
    cd "$work/packages"
    apt-get download -qq "$xnnpack:$arch" "libxnnpack-dev:$arch" "libpthreadpool0:$arch" \
      "libpthreadpool-dev:$arch" "libcpuinfo0:$arch" "libflatbuffers-dev:$arch" "libhwy-dev:$arch" \
      "libzstd1:$arch" "libzstd-dev:$arch" 2>../download.log
  ) || skip "cannot download the packages of $arch: $(tail -1 "$work/download.log")"
  mkdir -p "$work/$arch"
  for package in "$work"/packages/*_"$arch".deb; do
    dpkg-deb -x "$package" "$work/$arch/sysroot"
  done
  touch "$work/$arch/fetched"
}

for arch in arm64 armhf; do
  if ! fetched "$arch"; then
    fetch "$arch"
  fi
  cmake -S runtime/capi -B "$work/$arch/build" -DCMAKE_BUILD_TYPE=Release \
    --toolchain "$PWD/tests/arm/toolchain.cmake" -DARENITE_ARCH="$arch" \
    -DARENITE_SYSROOT="$PWD/$work/$arch/sysroot" >"$work/$arch.log"
  cmake --build "$work/$arch/build" -j "$(nproc)" >>"$work/$arch.log" 2>&1 ||
    { cat "$work/$arch.log" >&2; exit 1; }
done

ARENITE_ARM="$PWD/$work" "$python" -m pytest tests/arm "${@:2}"
