#!/usr/bin/env bash
# Run models as C source on emulated microcontroller boards: scripts/test-mcu.sh [PYTHON]. Installs
# Debian's cross compilers and emulators where they are missing; skips, and says why, where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

skip() {
  echo "test-mcu: skipped: $1"
  exit 0
}

declare -A tool=(
  [gcc-arm-none-eabi]=arm-none-eabi-gcc
  [qemu-system-arm]=qemu-system-arm
  [gcc-riscv64-unknown-elf]=riscv64-unknown-elf-gcc
  [qemu-system-misc]=qemu-system-riscv32
  [gcc-xtensa-lx106]=xtensa-lx106-elf-gcc
)
missing=()
for package in "${!tool[@]}"; do
  command -v "${tool[$package]}" >/dev/null || missing+=("$package")
done
# A compiler gives the whole path of a file that it has, and the bare name of another.
has() { [ "$("$1" -print-file-name="$2" 2>/dev/null || echo "$2")" != "$2" ]; }
has arm-none-eabi-gcc nosys.specs || missing+=(libnewlib-arm-none-eabi)
has riscv64-unknown-elf-gcc picolibc.specs || missing+=(picolibc-riscv64-unknown-elf)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || skip "needs Debian, or these by hand: ${missing[*]}"
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || skip "packages cannot be installed: neither root nor sudo"
    as_root="sudo"
  fi
  mkdir -p build/mcu
  # An index that cannot be renewed leaves the old one; what is really absent shows below.
  $as_root apt-get update -qq >build/mcu/update.log 2>&1 || true
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >build/mcu/install.log 2>&1 || skip "cannot install ${missing[*]}"
fi
command -v clang-19 >/dev/null ||
  echo "test-mcu: the board with vectors of RISC-V is skipped: it needs clang-19"

ARENITE_MCU=1 "$python" -m pytest tests/mcu --numprocesses 2 --dist worksteal "${@:2}"
