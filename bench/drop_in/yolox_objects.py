"""YOLOX nano, 8 bits: boxes and classes of a picture, with non-maximum suppression."""
# packages: pillow ai-edge-litert

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from measured import SHARED, measure
from PIL import Image

PICTURE = Image.open(SHARED / "images" / "cat.bmp").convert("RGB")
MODEL = str(SHARED / "tflite" / "yolox_nano_only_int8_quantize.tflite")
LEAST_SCORE, MOST_OVERLAP = 0.1, 0.45


def prepare():
    interpreter = Interpreter(MODEL)
    interpreter.allocate_tensors()
    return interpreter


def letterbox(height, width):
    scale = min(width / PICTURE.width, height / PICTURE.height)
    size = int(PICTURE.width * scale), int(PICTURE.height * scale)
    padded = np.full((height, width, 3), 114, np.float32)
    padded[: size[1], : size[0]] = np.asarray(PICTURE.resize(size))[:, :, ::-1]
    return padded


def decode(found, height, width):
    """Return centres and sizes in pixels, of cells of 8, 16 and 32 pixels."""
    cells, strides = [], []
    for stride in (8, 16, 32):
        rows, columns = np.mgrid[: height // stride, : width // stride]
        cells.append(np.stack([columns.ravel(), rows.ravel()], 1))
        strides.append(np.full((rows.size, 1), stride))
    cells, strides = np.concatenate(cells), np.concatenate(strides)
    found[:, :2] = (found[:, :2] + cells) * strides
    found[:, 2:4] = np.exp(found[:, 2:4]) * strides
    return found


def suppressed(boxes, scores):
    """Return the indices of boxes of which none covers most of another."""
    left, top = (boxes[:, :2] - boxes[:, 2:4] / 2).T
    right, bottom = (boxes[:, :2] + boxes[:, 2:4] / 2).T
    areas, order, kept = (right - left) * (bottom - top), np.argsort(-scores), []
    while order.size:
        first, rest = order[0], order[1:]
        kept.append(first)
        wide = np.minimum(right[first], right[rest]) - np.maximum(left[first], left[rest])
        high = np.minimum(bottom[first], bottom[rest]) - np.maximum(top[first], top[rest])
        shared = np.clip(wide, 0, None) * np.clip(high, 0, None)
        order = rest[shared / (areas[first] + areas[rest] - shared) < MOST_OVERLAP]
    return kept


def call(interpreter):
    (taken,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    _, _, height, width = taken["shape"]
    pixels = letterbox(height, width).transpose(2, 0, 1)[np.newaxis]
    if taken["dtype"] != np.float32:
        scale, zero = taken["quantization"]
        pixels = np.clip(np.round(pixels / scale + zero), -128, 255)
    interpreter.set_tensor(taken["index"], pixels.astype(taken["dtype"]))
    interpreter.invoke()
    raw = interpreter.get_tensor(made["index"])[0].astype(np.float32)
    if made["dtype"] != np.float32:
        scale, zero = made["quantization"]
        raw = (raw - zero) * scale
    found = decode(raw.copy(), height, width)
    scores = found[:, 4:5] * found[:, 5:]
    likely = np.flatnonzero(scores.max(1) > LEAST_SCORE)
    kept = likely[suppressed(found[likely], scores[likely].max(1))] if likely.size else likely
    return {"raw": raw, "boxes": found[kept, :4], "classes": scores[kept].argmax(1)}


measure(prepare, call)
