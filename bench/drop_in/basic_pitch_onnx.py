"""basic-pitch, ONNX: notes of 5 s of music."""
# packages: librosa mir_eval pretty_midi resampy onnxruntime scikit-learn setuptools<81
# alone: basic-pitch==0.4.0

import tempfile
from pathlib import Path

import basic_pitch
import numpy as np
import soundfile
from basic_pitch.inference import Model, predict
from measured import measure, signal

SOUND = Path(tempfile.mkdtemp(), "sound.wav")
soundfile.write(SOUND, signal(5, 22050), 22050)
MODEL = Path(basic_pitch.__file__).parent / "saved_models" / "icassp_2022" / "nmp.onnx"


def call(model):
    found, _, notes = predict(SOUND, model)
    return {**found, "notes": np.array([note[:4] for note in notes])}


measure(lambda: Model(MODEL), call, calls=4)
