"""Runs a model in another engine, in emulated Python: peer.py FORMAT ENGINE MODEL NPZ N.

The marks of count.c end the start-up, the loading with a first run, and the runs. Prints the
processor time of the fastest run in nanoseconds.
"""

import os
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from arenite.pipeline.contest.engines import CONVERTED, ENGINES

PACKAGES = {
    "litert-xnnpack": "ai_edge_litert.interpreter", "onnxruntime": "onnxruntime", "ncnn": "ncnn",
    "mnn": "MNN", "arenite": "arenite.runtime",
}  # fmt: skip

model_format, name, model, inputs, runs = sys.argv[1:]
with np.load(inputs) as stored:
    arrays = [stored[key] for key in stored.files]
import_module(PACKAGES[name])
os.getpgid(0)
engine = (CONVERTED.get(name) or ENGINES[model_format][name])(Path(model), 1)
engine.run(arrays)
os.getpgid(0)
fastest = sys.maxsize
for _ in range(int(runs)):
    start = time.process_time_ns()
    if engine.repeat is None:
        engine.run(arrays)
    else:
        engine.repeat()
    fastest = min(fastest, time.process_time_ns() - start)
os.getpgid(0)
print(fastest)
