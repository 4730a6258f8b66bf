#!/usr/bin/env bash
# Fuzz what reads files, guided by coverage, for so many minutes in all: program files and coded
# weights in native code (libFuzzer under the sanitizers), ONNX, TFLite, plan and CSV files in Python
# (atheris). What fails, and the corpus as it grew, is in build/fuzz-coverage.
#
#     scripts/fuzz.sh [MINUTES]
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-60}
python=${VENV:-.venv}/bin/python
folder=$PWD/build/fuzz-coverage
mkdir -p "$folder"

scripts/debian-packages.sh fuzz
"$python" -c 'import atheris' 2>/dev/null || [ -d "$folder/atheris" ] ||
  "$python" -m pip install --quiet --target "$folder/atheris" atheris
export PYTHONPATH=tests:$folder/atheris

"$python" -m support.fuzz_seeds "$folder"
tar -xf tests/hostile/corpus.tar.xz -C "$folder"

found=0
native() { # share of the time in percent, target
  make --silent -j2 -C runtime/fuzz BUILD="$folder/clang" "fuzz-$2" \
    SECONDS=$((minutes * 60 * $1 / 100)) CORPUS="$folder/$2" || found=1
}
readers() { # share, kind
  "$python" -m support.fuzz_importers "$2" "$folder" --seconds $((minutes * 60 * $1 / 100)) ||
    found=1
}
native 45 programs
native 5 weights
readers 25 onnx
readers 15 tflite
readers 7 plan
readers 3 csv
[ $found -eq 0 ] || echo "error: something failed; what did is in $folder" >&2
exit $found
