"""Parts of scripts for MediaPipe's models: anchors, boxes, regions of a picture."""

import numpy as np


def anchors(size, strides):
    """Return the centres of two anchors a cell for each stride, from 0 to 1."""
    made = []
    for stride in dict.fromkeys(strides):
        cells = -(-size // stride)
        rows, columns = (np.mgrid[:cells, :cells] + 0.5) / cells
        centres = np.stack([columns.ravel(), rows.ravel()], 1)
        made.append(np.repeat(centres, 2 * strides.count(stride), 0))
    return np.concatenate(made).astype(np.float32)


def detect(interpreter, picture, strides, low):
    """Return score, box and key points of the most likely detection, from 0 to 1."""
    taken = interpreter.get_input_details()[0]
    size = int(taken["shape"][1])
    interpreter.set_tensor(taken["index"], tensor(picture, size, low))
    interpreter.invoke()
    boxes, scores = (
        interpreter.get_tensor(each["index"])[0] for each in interpreter.get_output_details()
    )
    best = int(scores[:, 0].argmax())
    points = boxes[best].reshape(-1, 2) / size
    points[0] += anchors(size, strides)[best]
    points[2:] += anchors(size, strides)[best]
    return 1 / (1 + np.exp(-np.clip(scores[best, 0], -100, 100))), points


def tensor(picture, size, low):
    """Return a picture as a model takes it, from `low` to 1."""
    pixels = np.asarray(picture.resize((size, size)), np.float32) / 255
    return (pixels * (1 - low) + low)[np.newaxis]


def region(picture, centre, half):
    """Return a square part of a picture."""
    x, y = centre[0] * picture.width, centre[1] * picture.height
    side = max(half * picture.width, 16)
    return picture.crop((int(x - side), int(y - side), int(x + side), int(y + side)))


def outputs(interpreter, pixels):
    """Return all outputs of a model."""
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return {each["name"]: interpreter.get_tensor(each["index"]) for each in details}
