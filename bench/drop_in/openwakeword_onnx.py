"""openwakeword, ONNX: scores of sound in pieces of several lengths."""
# packages: onnxruntime scipy scikit-learn tqdm requests numpy<2
# alone: openwakeword==0.4.0

import numpy as np
from measured import measure, signal
from openwakeword.model import Model

SOUND = (signal(5, 16000) * 20000).astype(np.int16)
LENGTHS = (*[1280] * 30, 2560, 3840, *[1280] * 10)


def call(model):
    model.reset()
    scores, start = [], 0
    for length in LENGTHS:
        scores.append(model.predict(SOUND[start : start + length]))
        start += length
    return {name: [each[name] for each in scores] for name in scores[0]}


measure(Model, call, calls=4)
