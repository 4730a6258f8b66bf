#!/bin/sh
# Plan a real network, verify the plan against the model, compare the strategies; then build the
# network by that plan, run it, and measure it beside ONNX Runtime. Every step has the same height.
set -eu
bin=$1

model=$("$bin/python" -c 'from pathlib import Path; import onnx
print(Path(onnx.__file__).parent / "backend/test/data/light/light_densenet121.onnx")')
mkdir -p out
step() {
  printf '\n$ arenite %s\n' "$*"
  "$bin/arenite" "$@"
}
step plan "$model" -o out/densenet121.plan.json --map
step verify out/densenet121.plan.json "$model"
step compare "$model"

step build "$model" --plan out/densenet121.plan.json -o out/densenet121.arena
"$bin/python" -c 'import numpy as np
np.save("out/noise.npy", np.random.default_rng(0).random((1, 3, 224, 224), np.float32))'
step run out/densenet121.arena --input out/noise.npy --top 1 --profile
step bench "$model" --rounds 1 --seconds 1
