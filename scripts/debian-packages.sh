#!/bin/sh
# Install what the build and the tests need and the machine lacks: a compiler, Python's headers,
# venv, the libraries of the native runtime, and what the C library and hostile files are tested
# with.
set -eu

missing=""
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
python3 -c 'import pathlib, sys, sysconfig
sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' \
  >/dev/null 2>&1 || missing="$missing python3-dev"
command -v flatc >/dev/null 2>&1 || missing="$missing flatbuffers-compiler"
has_header() {
  [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
}
has_header flatbuffers/idl.h || missing="$missing libflatbuffers-dev"
has_header hwy/highway.h || missing="$missing libhwy-dev"
has_header pthreadpool.h || missing="$missing libpthreadpool-dev"
has_header zstd.h || missing="$missing libzstd-dev"
command -v cmake >/dev/null 2>&1 || missing="$missing cmake"
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
command -v valgrind >/dev/null 2>&1 || missing="$missing valgrind"
if [ "${1:-}" = browser ]; then # for the tests of the report page, and of C source with a second compiler
  command -v clang >/dev/null 2>&1 || missing="$missing clang"
  command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
  command -v chromedriver >/dev/null 2>&1 || missing="$missing chromium-driver"
fi
if [ "${1:-}" = fuzz ]; then # for libFuzzer, which clang has
  command -v clang++ >/dev/null 2>&1 || missing="$missing clang"
  ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ||
    missing="$missing libclang-rt-dev"
fi
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "error: please install:$missing" >&2
  exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "error: please install, as root: apt-get install$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086  # the list is words on purpose
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing
