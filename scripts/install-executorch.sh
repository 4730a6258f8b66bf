#!/usr/bin/env bash
# install-executorch.sh PYTHON: ExecuTorch for the tests of its target, where PyTorch is.
#
# Only what exporting and running take: its wheel asks for ten more packages, Core ML's tools among
# them, which nothing here imports. Where pip does not find it, those tests are skipped.
set -euo pipefail

python=$1
packages=(executorch==1.5.1 torchao==0.18.0 ruamel.yaml==0.19.1 tabulate==0.10.0)

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "No PyTorch here: the tests of ExecuTorch will be skipped." >&2
    exit 0
fi
if "$python" -c 'from importlib.util import find_spec as f; exit(not f("executorch"))'; then
    exit 0
fi
if ! said=$("$python" -m pip install --quiet --no-compile --no-deps --only-binary :all: "${packages[@]}" 2>&1); then
    tail -n 1 <<<"$said" >&2
    echo "${packages[0]} is not to be had here: its tests will be skipped." >&2
fi
