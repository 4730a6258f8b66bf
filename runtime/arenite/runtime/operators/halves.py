"""Working memory of steps with operands of 16-bit floats.

The core converts a few rows of them to 32-bit floats, computes, and converts the result back
(`halves.cpp`).
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner import DType, Tensor, TensorKind
from arenite.planner.operators import Operands, Operator
from arenite.planner.tensors import has_rows, num_rows
from arenite.planner.units import align_up

IntArray: TypeAlias = NDArray[np.int64]

SHORT_FLOATS = (DType.FLOAT16, DType.BFLOAT16)
"""Floats of 16 bits: weights may be of either, what a run makes of the first."""

_FLOAT_BYTES = 4
_ALIGNMENT = 64
"""Bytes that the core rounds each converted operand up to."""
_CACHED = 64 * 1024
"""Bytes of converted rows that stay in the cache of a core, beside the weights."""
_SHARE = 8
"""Over which part of all operands the converted rows take, unless one row takes more."""
_PANELS = 16 * 1024
"""Bytes of converted panels of a filter, unless a few panels take more."""
_FEWEST_PANELS = 2
_LEAST_RANK = 3


class KernelOperator(Operator):
    """An operator that a kernel computes, which knows no 16-bit floats.

    Attributes:
        widens_filter: Whether its second input may be a filter of 16-bit floats, of which the
            kernel converts some panels at a time.
    """

    __slots__ = ()

    widens_filter: ClassVar[bool] = False

    def widens_panels(self, operands: Operands) -> bool:
        """Tell whether it needs working memory for such a filter."""
        return self.widens_filter

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of working memory of its kernel."""
        return 0

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        """Tell whether the core makes rows of it apart, if that can be (`makes_rows`)."""
        return True

    def takes_halves(self, position: int) -> bool:
        """Tell whether its kernel reads an input of 16-bit floats as it is."""
        return self.widens_filter and position == 1


def is_half(tensor: Tensor | None) -> bool:
    """Tell whether a tensor is of 16-bit floats."""
    return tensor is not None and tensor.dtype is DType.FLOAT16


def has_halves(operands: Operands) -> bool:
    """Tell whether some operand is of 16-bit floats."""
    return any(
        each is not None and _is_short(each) for each in (*operands.inputs, *operands.outputs)
    )


def converts_halves(operator: KernelOperator, operands: Operands) -> bool:
    """Tell whether some operand of 16-bit floats is converted in working memory."""
    converted = (*_converted_inputs(operator, operands), *operands.outputs)
    return any(map(is_half, converted)) or _short_filter(operator, operands) is not None


def _short_filter(operator: KernelOperator, operands: Operands) -> Tensor | None:
    """Return the filter of 16-bit floats of a convolution or product, if it has one."""
    weights = operands.input(1) if operator.widens_filter else None
    return weights if weights is not None and _is_short(weights) else None


def _is_short(tensor: Tensor) -> bool:
    return tensor.dtype in SHORT_FLOATS


def scratch_of_all(operator: KernelOperator, operands: Operands, panels: int = _PANELS) -> int:
    """Return the bytes of all 16-bit operands as 32-bit floats, and of what the kernel needs.

    Args:
        operator: Its operator.
        operands: Its operands.
        panels: Bytes of the filter that are converted at a time.
    """
    converted = (*_converted_inputs(operator, operands), *operands.outputs)
    kept = [each for each in converted if each and _is_made(each)]
    images = sum(_image_bytes(each.num_elements) for each in kept)
    kernel = align_up(operator.kernel_scratch(_widened(operands)), _ALIGNMENT)
    return images + kernel + _filter_bytes(operator, operands, panels)


@lru_cache(maxsize=4096)
def scratch_of_rows(operator: KernelOperator, operands: Operands) -> int | None:
    """Return the bytes of a few converted rows, None if the step cannot run by rows."""
    images = _images(operator, operands)
    if images is None:
        return None
    of_filter = _filter_bytes(operator, operands, _PANELS)
    wanted = min(_CACHED, scratch_of_all(operator, operands) // _SHARE) + of_filter
    counts = range(1, images.num_rows + 1)
    fitting = bisect_right(counts, wanted, key=images.bytes_of)
    return int(images.bytes_of(max(fitting, 1)))


class _Images:
    """The converted operands of a step that runs by rows.

    Attributes:
        num_rows: Rows that its turns count.
    """

    def __init__(self, counted: int, fixed: int) -> None:
        self.num_rows = counted
        self._fixed = fixed
        self._reads: list[tuple[int, int, IntArray, IntArray]] = []

    def add(self, tensor: Tensor, reads: Iterable[tuple[int, int]] | None) -> None:
        """Add an operand.

        Args:
            tensor: The operand.
            reads: The rows of it that each row reads, from the first to before the last; None if
                all of it is converted at once.
        """
        if reads is None:
            self._fixed += _image_bytes(tensor.num_elements)
            return
        extent = num_rows(tensor)
        rows = np.array([each if each[0] < each[1] else (extent, 0) for each in reads])
        first = np.minimum.accumulate(rows[::-1, 0])[::-1]
        stop = np.maximum.accumulate(rows[:, 1])
        self._reads.append((tensor.num_elements // extent, extent, first, stop))

    def bytes_of(self, count: int) -> int:
        """Return the bytes for so many rows of the result at a time."""
        found = self._fixed
        for elements, extent, first, stop in self._reads:
            ends = stop[np.minimum(np.arange(count - 1, count - 1 + len(stop)), len(stop) - 1)]
            most = int((ends - first).max())
            found += _image_bytes(elements * min(max(most, 1), extent))
        return found


def _images(operator: KernelOperator, operands: Operands) -> _Images | None:
    wide = _widened(operands)
    sums = operator.accumulates_rows(wide)
    counted = operands.source if sums else operands.result
    if counted is None or not _is_image(counted) or len(operands.outputs) != 1:
        return None
    if not sums and not (operator.makes_rows(wide) and operator.has_kernel_by_rows(wide)):
        return None
    if operator.kernel_scratch(wide):
        return None
    result = operands.result
    assert result is not None
    fixed = (
        _image_bytes(result.num_elements) if sums else _filter_bytes(operator, operands, _PANELS)
    )
    found = _Images(num_rows(counted), fixed)
    each_row = [(row, row + 1) for row in range(num_rows(counted))]
    for position, tensor in enumerate(_converted_inputs(operator, operands)):
        if tensor is None or not _is_made(tensor):
            continue
        reads: Iterable[tuple[int, int]] | None = None
        if sums:
            reads = each_row
        elif _is_image(tensor) and operator.reads_rows(position):
            reads = operator.rows_read(wide, position)
        found.add(tensor, reads)
    if is_half(result):
        found.add(result, None if sums else each_row)
    return found


def _converted_inputs(operator: KernelOperator, operands: Operands) -> tuple[Tensor | None, ...]:
    """Return the inputs, None in the place of those of 16-bit floats that are read as they are."""
    return tuple(
        None if operator.takes_halves(position) else each
        for position, each in enumerate(operands.inputs)
    )


def _filter_bytes(operator: KernelOperator, operands: Operands, cached: int) -> int:
    """Return the bytes of some panels of a filter of 16-bit floats, at least two."""
    weights = _short_filter(operator, operands)
    if weights is None or not operator.widens_panels(operands):
        return 0
    panel = _FLOAT_BYTES * weights.num_elements // weights.shape[0]
    panels = min(max(cached // panel, _FEWEST_PANELS), weights.shape[0])
    return align_up(panels * panel, _ALIGNMENT)


def _is_made(tensor: Tensor) -> bool:
    return is_half(tensor) and tensor.kind is not TensorKind.CONSTANT


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) >= _LEAST_RANK and has_rows(tensor)


def _image_bytes(num_elements: int) -> int:
    return align_up(_FLOAT_BYTES * num_elements, _ALIGNMENT)


def _widened(operands: Operands) -> Operands:
    def wide(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or not is_half(tensor):
            return tensor
        return replace(tensor, dtype=DType.FLOAT32)

    return Operands(tuple(map(wide, operands.inputs)), tuple(map(wide, operands.outputs)))
