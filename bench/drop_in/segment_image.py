"""DeepLab v3: what each pixel of a picture belongs to, as Coral's example does."""
# packages: pillow ai-edge-litert

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from measured import SHARED, measure
from PIL import Image

NAMES = np.array(
    ["background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair",
     "cow", "table", "dog", "horse", "motorbike", "person", "plant", "sheep", "sofa", "train",
     "screen"]
)  # fmt: skip
PICTURE = Image.open(SHARED / "images" / "cat.bmp").convert("RGB")
MODEL = SHARED / "tflite" / "deeplabv3_mnv2_dm05_pascal_quant.tflite"


def prepare():
    interpreter = Interpreter(MODEL.as_posix())
    interpreter.allocate_tensors()
    return interpreter


def call(interpreter):
    taken = interpreter.get_input_details()[0]
    height, width = taken["shape"][1:3]
    tensor = interpreter.tensor(taken["index"])()[0]
    tensor[:, :] = np.asarray(PICTURE.resize((width, height)))
    del tensor  # nothing may refer to the input while it runs
    interpreter.invoke()
    made = interpreter.get_output_details()[0]["index"]
    return {"names": NAMES[interpreter.tensor(made)()[0]]}


measure(prepare, call)
