"""label_image: names of two pictures by MobileNet v1 and v2, as TensorFlow documents it."""
# packages: pillow ai-edge-litert

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from measured import SHARED, measure
from PIL import Image

LABELS = (SHARED / "images" / "imagenet_labels.txt").read_text().splitlines()
PICTURES = [Image.open(SHARED / "images" / f"{name}.bmp") for name in ("cat", "grace_hopper")]


def load(name):
    interpreter = Interpreter(model_path=str(SHARED / "tflite" / name), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def classify(interpreter, picture):
    """Return the probability of each class."""
    (taken,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    _, height, width, _ = taken["shape"]
    pixels = np.asarray(picture.convert("RGB").resize((width, height)), np.float32)
    if taken["dtype"] == np.int8:  # this model takes -1 to 1
        scale, zero = taken["quantization"]
        pixels = np.round((pixels - 127.5) / 127.5 / scale) + zero
    interpreter.set_tensor(taken["index"], pixels.astype(taken["dtype"])[np.newaxis])
    interpreter.invoke()
    scale, zero = made["quantization"]
    return scale * (np.squeeze(interpreter.get_tensor(made["index"])).astype(np.float32) - zero)


def call(models):
    found = {}
    for name, model in models.items():
        for number, picture in enumerate(PICTURES):
            likely = classify(model, picture)
            best = np.argsort(likely)[-3:]
            found[f"{name} {number}"] = likely
            found[f"{name} {number} names"] = [LABELS[each % len(LABELS)] for each in best]
    return found


measure(
    lambda: {
        "v1": load("mobilenet_v1_0.5_160_quant.tflite"),
        "v2": load("tf2_mobilenet_v2_1.0_224_ptq.tflite"),
    },
    call,
)
