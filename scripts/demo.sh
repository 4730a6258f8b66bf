#!/bin/sh
# A real network from the first look to a page: planned, run by its plan, run in bands of rows in less
# than half of that memory, measured beside ONNX Runtime.
set -eu
bin=$1

mkdir -p out
model=out/densenet121.onnx
"$bin/python" -c 'import shutil, sys; from pathlib import Path; import numpy as np; import onnx
light = Path(onnx.__file__).parent / "backend/test/data/light/light_densenet121.onnx"
shutil.copyfile(light, sys.argv[1])
np.save("out/noise.npy", np.random.default_rng(0).random((1, 3, 224, 224), np.float32))' "$model"
step() {
  printf '\n$ arenite %s\n' "$*"
  "$bin/arenite" "$@"
}
step "$model"
step plan "$model" -o out/densenet121.plan.json --map
step verify out/densenet121.plan.json "$model"
step build "$model" --plan out/densenet121.plan.json -o out/densenet121.arena
step run out/densenet121.arena --input out/noise.npy --top 1

step fit "$model"
step fit "$model" --budget 50% -o out/densenet121.small.arena
step run out/densenet121.small.arena --input out/noise.npy --top 1
step bench "$model" --rounds 1 --seconds 1

page=out/densenet121.html
step compare "$model" --strategy best --strategy greedy-by-size --strategy tflite-cpu \
  --strategy onnxruntime-pattern --strategy no-reuse -o "$page"
printf '\nThe page, memory against time and what lies where: file://%s\n' "$PWD/$page"
