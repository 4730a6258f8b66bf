"""Fourier's transform, and what is read of it.

The core has no complex numbers: here they are pairs of floats, along an axis of their own.
"""

import math
from dataclasses import replace

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.moves import picked
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.reduction import Reduce, ReduceFunction
from arenite.runtime.operators.spectrum import Rfft2D

_PARTS = {"REAL": 0, "IMAG": 1}
_MOVERS = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
_READERS = _MOVERS | {"CAST", "COMPLEX_ABS", *_PARTS}
_MAKERS = _MOVERS | {"RFFT2D"}


def check_complex(t: Translation) -> None:
    """Refuse complex numbers where no translator takes them as pairs.

    Raises:
        NotLoweredError: The operator reads or makes some.
    """
    read, made = (filter(t.is_complex, names) for names in (t.step.reads, t.step.writes))
    if t.kind not in _READERS and any(read):
        raise NotLoweredError("it computes in complex numbers")
    for name in made:
        if t.kind not in _MAKERS:
            raise NotLoweredError("it makes complex numbers")
        if name in t.builder.model.output_tensors:
            raise NotLoweredError("its complex numbers are outputs of the model")


@translates("RFFT2D")
def rfft2d(t: Translation) -> None:
    """Translate RFFT2D with constant lengths."""
    rows, columns = t.integers(1)
    value = t.value()
    if value.dtype is not DType.FLOAT32 or math.prod(value.shape) == 0 or len(value.shape) < 2:
        raise NotLoweredError(f"it transforms {value.dtype.label}, {value.shape}")
    if columns < 2 or rows < 1 or (rows & (rows - 1)) or (columns & (columns - 1)):
        raise NotLoweredError(f"it transforms {rows} rows of {columns}, no powers of 2")
    shape = (*value.shape[:-2], rows, columns // 2 + 1, 2)
    (result,) = t.builder.emit(
        Rfft2D(rows=rows, columns=columns),
        [value],
        [(f"{t.target}/pairs", shape, as_written(len(shape)))],
        dtype=DType.FLOAT32,
        step=t.step.name,
    )
    t.builder.bind(t.target, result)


@translates("COMPLEX_ABS")
def magnitude(t: Translation) -> None:
    """Translate COMPLEX_ABS."""
    pairs = _pairs(t)
    operator = Reduce(function=ReduceFunction.L2, axes=(len(pairs.shape) - 1,))
    t.finish(t.emit(operator, [pairs], shape=pairs.shape[:-1]))


@translates(*_PARTS)
def part(t: Translation) -> None:
    """Translate REAL, IMAG, or a CAST, which takes the real part."""
    pairs = _pairs(t)
    shape = (*pairs.shape[:-1], 1)
    first = (*(0,) * (len(shape) - 1), _PARTS.get(t.kind, 0))
    move = picked(pairs, shape, first, (1,) * len(shape))
    result = t.emit(Copy(moves=(move,)), [pairs], shape=shape)
    t.finish(replace(result, shape=shape[:-1], order=as_written(len(shape) - 1)))


def _pairs(t: Translation) -> Value:
    """Return complex numbers as pairs.

    Raises:
        NotLoweredError: They are not those of a transform.
    """
    pairs = t.value()
    if pairs.dtype is not DType.FLOAT32 or t.dtype is not DType.FLOAT32:
        raise NotLoweredError("it reads complex numbers that no RFFT2D makes")
    return pairs
