#!/usr/bin/env bash
# Cross-compile the native parts for ARM, compare their outputs under emulation with those of this
# machine, and guard the number of their instructions: scripts/test-arm.sh [PYTHON]. Skips, and says
# why, where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

code=0
scripts/build-arm.sh "$python" || code=$?
[ "$code" != 77 ] || exit 0
[ "$code" = 0 ] || exit "$code"
ARENITE_ARM="$PWD/build/arm" "$python" -m pytest tests/arm --numprocesses 2 --dist worksteal "${@:2}"
