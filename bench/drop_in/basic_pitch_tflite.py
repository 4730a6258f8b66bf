"""basic-pitch, TFLite: notes of 5 s of music, by a signature."""
# packages: basic-pitch==0.4.0 tflite-runtime==2.14.0 numpy<2 setuptools<81

import tempfile
from pathlib import Path

import numpy as np
import soundfile
from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
from basic_pitch.inference import Model, predict
from measured import measure, signal

SOUND = Path(tempfile.mkdtemp(), "sound.wav")
soundfile.write(SOUND, signal(5, 22050), 22050)


def call(model):
    found, _, notes = predict(SOUND, model)
    return {**found, "notes": np.array([note[:4] for note in notes])}


measure(lambda: Model(build_icassp_2022_model_path(FilenameSuffix.tflite)), call, calls=4)
