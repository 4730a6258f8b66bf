#!/usr/bin/env bash
# install-torch.sh PYTHON: PyTorch for the training tests, its CPU build or nothing.
#
# What PyPI calls `torch` brings several GB of CUDA packages on Linux. The local version label
# `+cpu` names the build without them; pip finds it only where its configuration lists a place
# that has one, PyTorch's own CPU index or a folder of wheels, and otherwise installs nothing.
# The training tests are then skipped, with the reason.
set -euo pipefail

python=$1
release=2.13.0+cpu

if "$python" -c 'import torch' 2>/dev/null; then
    exit 0
fi
if ! said=$("$python" -m pip install --quiet --no-compile --only-binary :all: "torch==$release" 2>&1); then
    tail -n 1 <<<"$said" >&2
    echo "PyTorch $release is not to be had here: the training tests will be skipped." >&2
    echo "Name a place that has it, in PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS say." >&2
fi
