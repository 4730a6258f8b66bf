"""Resize and Upsample over rows and columns."""

from collections.abc import Callable

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Array
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.interpolation import linear, nearest
from arenite.runtime.lowering.layout import channels_last
from arenite.runtime.lowering.onnx.registry import translates
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.lowering.translators import Layout


@translates("Resize", "Upsample", layout=Layout.CHANNELS_LAST)
def resize(t: Translation) -> None:
    """Translate Resize or Upsample by nearest neighbour or linearly."""
    value = t.value()
    rank = len(value.shape)
    mode = t.attribute("mode", "nearest")
    if t.dtype is not DType.FLOAT32 or rank != 4:
        raise NotLoweredError(f"it resizes {t.dtype.label} of rank {rank}")
    if value.shape[:2] != t.shape[:2]:
        raise NotLoweredError("it resizes more than rows and columns")
    if mode not in ("nearest", "linear") or t.attribute("antialias", 0):
        raise NotLoweredError(f"its mode is {mode!r}")
    value = t.builder.in_order(value, channels_last(4), t.target)
    scales = _scales(t)
    axes = [_source_places(t, value.shape[axis], t.shape[axis], scales[axis]) for axis in (2, 3)]
    height, width = value.shape[2:]
    if mode == "nearest":
        rows, columns = (_rounded(t, places) for places in axes)
        operator = nearest(rows, columns, height, width)
    else:
        operator = linear(axes[0], axes[1], height, width)
    t.finish(t.emit(operator, [value], order=channels_last(4)))


def _scales(t: Translation) -> tuple[float, ...]:
    """Return the factor of each axis, exactly as the model states it if it does."""
    is_upsample = t.kind == "Upsample"
    position = 1 if is_upsample or t.opset < 11 else 2
    given = t.optional_array(position)
    if given is not None and given.size == 4:
        return tuple(float(scale) for scale in given.reshape(-1))
    source = t.value().shape
    return tuple(new / old for new, old in zip(t.shape, source, strict=True))


def _source_places(t: Translation, old: int, new: int, scale: float) -> Array:
    """Return the place in the input of each row or column of the output."""
    if t.opset < 11 or t.kind == "Upsample":
        mode = "asymmetric"
    else:
        mode = t.attribute("coordinate_transformation_mode", "half_pixel")
    x = np.arange(new, dtype=np.float32)
    factor = np.float32(scale)
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        return x * np.float32(old - 1) / np.float32(max(new - 1, 1))
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and new > 1):
        return (x + np.float32(0.5)) / factor - np.float32(0.5)
    if mode == "pytorch_half_pixel":
        return np.zeros(new, np.float32)
    raise NotLoweredError(f"its coordinates are {mode!r}")


def _rounded(t: Translation, places: Array) -> Array:
    mode = t.attribute("nearest_mode", "round_prefer_floor")
    if t.opset < 11 or t.kind == "Upsample":
        mode = "floor"
    rounding: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
        "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in rounding:
        raise NotLoweredError(f"its rounding is {mode!r}")
    return rounding[mode](places)
