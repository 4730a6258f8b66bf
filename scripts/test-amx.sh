#!/usr/bin/env bash
# Compare convolutions made by the instructions of AMX, on an emulated processor, with a plain loop:
# scripts/test-amx.sh [COUNT]. BOCHS names the emulator, 3.0 or newer. Skips, and says why, where it
# cannot. No Linux is emulated, since it gives no tiles to what Bochs emulates: that Linux is asked
# for them as it should be is not tested here.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000}
work=$PWD/build/amx
bochs=${BOCHS:-bochs}

skip() {
  echo "test-amx: skipped: $1"
  exit 0
}

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip "needs Debian on x86-64"
mkdir -p "$work"
if ! command -v "$bochs" >/dev/null; then
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || skip "packages cannot be installed: neither root nor sudo"
    as_root="sudo"
  fi
  $as_root apt-get update -qq >"$work/update.log" 2>&1 || true
  candidate=$(apt-cache policy bochs | sed -n 's/.*Candidate: //p')
  dpkg --compare-versions "${candidate:-0}" ge 3.0 ||
    skip "this Debian's Bochs is ${candidate:-none}; AMX needs 3.0, which Debian 13 has"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    bochs >"$work/install.log" 2>&1 || skip "cannot install bochs"
fi
"$bochs" --help cpu 2>&1 | grep sapphire_rapids >/dev/null || skip "$bochs has no processor with AMX"

make --silent -j "$(nproc)" -C tests/amx BUILD="$work" COUNT="$count"
cp tests/amx/bochsrc "$work/"
# The emulated machine ends by what the emulator takes for a failure.
(cd "$work" && timeout 1800 "$bochs" -q -f bochsrc >output 2>&1) || true
if ! grep -x "$count convolutions and pools, and sums, no difference" "$work/output"; then
  tail -n 20 "$work/output" >&2
  exit 1
fi
