#!/bin/sh
# Plan a real network, verify the plan against the model, compare the strategies.
set -eu
bin=$1

model=$("$bin/python" -c 'from pathlib import Path; import onnx
print(Path(onnx.__file__).parent / "backend/test/data/light/light_densenet121.onnx")')
mkdir -p out
"$bin/arenite" plan "$model" -o out/densenet121.plan.json --map
"$bin/arenite" verify out/densenet121.plan.json "$model"
"$bin/arenite" compare "$model"
