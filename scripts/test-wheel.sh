#!/usr/bin/env bash
# Build the sdist from the committed files in a bare folder, a wheel from the sdist, and try the
# wheel where no compiler is: scripts/test-wheel.sh [PYTHON]. The wheel is this machine's own: it
# needs the libraries of this system, unlike those that cibuildwheel makes.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git archive HEAD | tar -x -C "$work/tree"
checkout=$PWD
cd "$work"

"$python" -m venv maker
maker/bin/python -m pip install --quiet build
maker/bin/python -m build --sdist --outdir made tree >sdist.log || { cat sdist.log; exit 1; }
rm -r tree
maker/bin/python -m pip wheel --quiet --no-deps --wheel-dir made made/arenite-*.tar.gz

wheel=$(echo made/arenite-*.whl)
maker/bin/python - "$wheel" "$checkout/scripts/licences" <<'CHECK'
import sys
import zipfile
from pathlib import Path

names = {Path(name).name for name in zipfile.ZipFile(sys.argv[1]).namelist() if "/licenses/" in name}
missing = {"LICENSE", *(path.name for path in Path(sys.argv[2]).iterdir())} - names
sys.exit(f"the wheel lacks the licences {sorted(missing)}" if missing else 0)
CHECK

"$python" -m venv user
# Only what is in the environment itself can be run: no compiler, no CMake.
bare() { env -i HOME="$work" PATH="$work/user/bin" "$@"; }
bare user/bin/python -m pip install --quiet --only-binary :all: "$wheel"
cp -R "$checkout/tests" tests
bare user/bin/python tests/installed_wheel.py
bare user/bin/arenite --version
stat --format='%n: %s bytes' made/*
