"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

import numpy as np

from arenite.planner.program import Array
from arenite.runtime.lowering.interpolation import linear, nearest
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation


@translates("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(t: Translation) -> None:
    """Translate a resize of rows and columns."""
    value = t.value()
    _, height, width, _ = value.shape
    rows, columns = _places(t, height, t.shape[1]), _places(t, width, t.shape[2])
    if t.kind == "RESIZE_BILINEAR":
        operator = linear(rows, columns, height, width)
    else:
        # Halves are rounded up, not to even.
        half = 0.5 if t.integer("AlignCorners", 0) else 0.0
        rows, columns = (np.floor(each.astype(np.float64) + half) for each in (rows, columns))
        operator = nearest(rows, columns, height, width)
    t.finish(t.emit(operator, [value]))


def _places(t: Translation, old: int, new: int) -> Array:
    """Return the place in the input of each row or column of the output."""
    if t.integer("AlignCorners", 0) and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    else:
        scale = np.float32(old) / np.float32(new)
    index = np.arange(new, dtype=np.float32)
    if not t.integer("HalfPixelCenters", 0):
        return index * scale
    is_nearest = t.kind == "RESIZE_NEAREST_NEIGHBOR"
    places: Array = (index + np.float32(0.5)) * scale
    return places if is_nearest else places - np.float32(0.5)
