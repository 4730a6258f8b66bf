"""silero-vad: speech in sound, by its ONNX wrapper."""
# packages: silero-vad==6.2.3 onnxruntime

import torch
from measured import measure, signal
from silero_vad import get_speech_timestamps, load_silero_vad

torch.set_num_threads(1)
SOUND = torch.from_numpy(signal(6, 16000))


def call(model):
    model.reset_states()
    starts = range(0, len(SOUND) - 512, 512)
    scores = [float(model(SOUND[start : start + 512], 16000)) for start in starts]
    speech = get_speech_timestamps(SOUND, model, threshold=0.01)
    return {"scores": scores, "speech": [[each["start"], each["end"]] for each in speech]}


measure(lambda: load_silero_vad(onnx=True), call, calls=4)
