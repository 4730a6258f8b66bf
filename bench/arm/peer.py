"""Runs a model in another engine, in emulated Python: peer.py FORMAT ENGINE MODEL NPZ N."""

import sys
from pathlib import Path

import numpy as np

from arenite.pipeline.contest.engines import CONVERTED, ENGINES

model_format, name, model, inputs, runs = sys.argv[1:]
with np.load(inputs) as stored:
    arrays = [stored[key] for key in stored.files]
engine = (CONVERTED.get(name) or ENGINES[model_format][name])(Path(model), 1)
engine.run(arrays)
for _ in range(int(runs)):
    if engine.repeat is None:
        engine.run(arrays)
    else:
        engine.repeat()
