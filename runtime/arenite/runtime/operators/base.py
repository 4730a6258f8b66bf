"""Bases of the operators of our runtime, and their rows.

Images are stored channels last: N, H, W, C. Axes count stored axes. Padding is top, right,
bottom, left.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from arenite.planner import DType, Tensor
from arenite.planner.operators import Along, Operands, Operator, Region
from arenite.planner.sizes import depends
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.operators.halves import (
    KernelOperator,
    converts_halves,
    scratch_of_all,
    scratch_of_rows,
)

Pair: TypeAlias = tuple[int, int]
Sides: TypeAlias = tuple[int, int, int, int]
NO_PADDING: Sides = (0, 0, 0, 0)
FLOAT_BYTES = 4
PANEL = 16
"""Output channels that lie side by side in a packed filter, or columns in a packed matrix."""
UNSTORED = "unstored"
"""Metadata of a field that the program file does not have."""

# Numbers that the program file does not store in 32 bits.
Offset: TypeAlias = Annotated[int, "ulong"]
Lengths: TypeAlias = Annotated[tuple[int, ...], "[ulong]"]
Strides: TypeAlias = Annotated[tuple[int, ...], "[long]"]


class RuntimeOperator(KernelOperator):
    """An operator that the core runs: a dataclass of its attributes in the program file.

    Attributes:
        number: Its number in the program file, never given to another operator.
        moves_halves: Whether it moves or converts 16-bit floats; the others compute.
        counts: Whether a run counts the rows of its result.
        looks_up: Whether it reads few rows of its constants, and gives their pages back.
    """

    __slots__ = ()

    number: ClassVar[int]
    repeatable: ClassVar[bool] = True
    moves_halves: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    looks_up: ClassVar[bool] = False

    def loaded_inputs(self) -> tuple[int, ...]:
        """Return the constant inputs that windows may take the place of, the weights first.

        Their first axis has panels of outputs, from which the core makes these alone.
        """
        return ()

    def computes_halves(self, operands: Operands) -> bool:
        """Tell whether the core converts operands of 16-bit floats for its kernel."""
        return not self.moves_halves and converts_halves(self, operands)

    def in_parts(self, operands: Operands, rows: int) -> "SumsOfParts | None":
        """Return how it takes sums over so many rows each, in place of the rows.

        None unless it makes one result of all rows, the same to the bit.
        """
        return None

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of its kernel, or of 16-bit operands that are converted."""
        if not self.computes_halves(operands):
            return self.kernel_scratch(operands)
        everything = int(scratch_of_all(self, operands))  # at any size as many rows as fit
        rows = scratch_of_rows(self, operands)
        return everything if rows is None else min(rows, everything)

    def row_scratch(self, operands: Operands) -> int:
        if not self.computes_halves(operands):
            return 0
        return scratch_of_rows(self, operands) or 0


@dataclass(frozen=True, slots=True)
class SumsOfParts:
    """Sums over groups of rows of an image, which an operator takes in place of the rows.

    Attributes:
        operator: Makes the sums.
        sums: Their tensor, a row for each group.
    """

    operator: RuntimeOperator
    sums: Tensor


@dataclass(frozen=True, slots=True)
class Clamped(RuntimeOperator):
    """An operator whose kernel clamps the result to [min, max] as it writes it."""

    takes_clamp: ClassVar[bool] = True

    min: float = -math.inf
    max: float = math.inf


_LEAST_RANK = 3


def is_one_image(tensor: Tensor | None) -> bool:
    """Tell whether a tensor is one image, or one list of rows, none of them empty."""
    return (
        tensor is not None
        and len(tensor.shape) >= _LEAST_RANK
        and tensor.shape[0] == 1
        and math.prod(tensor.shape) > 0
    )


def has_fixed_top(padding: Sides) -> bool:
    """Tell whether each row of a result is made of the same rows at all sizes, if these exist."""
    return not depends(padding[0])


def makes_one_image(operands: Operands) -> bool:
    """Tell whether a step has one output, which is one image or one list of rows."""
    return len(operands.outputs) == 1 and is_one_image(operands.result)


def has_16_bits(operands: Operands) -> bool:
    """Tell whether the first input is of integers of 16 bits."""
    return operands.source is not None and operands.source.dtype is DType.INT16


class RowWise(Operator):
    """Makes each row of its result from the same row of its inputs, or of some of them.

    An input that is broadcast along the rows is read whole.
    """

    __slots__ = ()

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether the rows of all inputs are those of the result, or one for all rows."""
        result = operands.result
        if result is None or not makes_one_image(operands):
            return False
        rank, rows = len(result.shape), result.shape[ROW_AXIS]
        for tensor in operands.inputs:
            if tensor is None:
                continue
            missing = rank - len(tensor.shape)
            if missing < 0:
                return False
            has_rows = missing <= ROW_AXIS and tensor.shape[ROW_AXIS - missing] != 1
            if has_rows and (missing or tensor.shape[ROW_AXIS] != rows):
                return False
        return True


class AlongLastAxes(Operator):
    """Reads some of the last axes of its first input whole for each element that it makes."""

    __slots__ = ()

    def num_whole_axes(self, operands: Operands) -> int:
        """Return how many of the last axes are read whole."""
        return 1

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether the rows are not among the axes that are read whole."""
        source, result = operands.source, operands.result
        if source is None or result is None or not makes_one_image(operands):
            return False
        kept = len(source.shape) - self.num_whole_axes(operands)
        return kept > ROW_AXIS and source.shape[:kept] == result.shape[:kept]

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same region of the first input, but the whole of its last axes."""
        source = operands.source
        # Not super(): dataclasses with slots are copies of their classes.
        everything = Operator.input_region(self, operands, position, region)
        if position or source is None or operands.result is None:
            return everything
        kept = len(source.shape) - self.num_whole_axes(operands)
        if kept < 0 or source.shape[:kept] != operands.result.shape[:kept]:
            return everything
        return (*region[:kept], *everything[kept:])

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> Operator | None:
        """Return the same, unless rows are among the axes that are read whole."""
        source = operands.source
        if source is None or along.axis >= len(source.shape) - self.num_whole_axes(operands):
            return None
        return self


def without_padding(padding: Sides, axis: int) -> Sides:
    """Return the padding of an image less that along an axis: 1 for rows, 2 for columns.

    Along axis 0 are whole images.
    """
    if axis == 0:
        return padding
    top, right, bottom, left = padding
    return (0, right, 0, left) if axis == ROW_AXIS else (top, 0, bottom, 0)


def padding_at_border(padding: Sides, along: Along, made: Pair, taken: Pair) -> Sides:
    """Return the padding of some rows or columns of an image, of which some of a result are made.

    Args:
        padding: Of the image.
        along: How a window over it makes the result, along axis 1 or 2; along 0 whole images do.
        made: Rows or columns of the result, from the first to before the second.
        taken: Those of the image.
    """
    if along.axis == 0:
        return padding
    top, right, bottom, left = padding
    window = along.windows[0]
    assert window is not None
    low, high = window.under(*made)
    before, behind = taken[0] - low, high - taken[1]
    if along.axis == ROW_AXIS:
        return (min(top, before), right, min(bottom, behind), left)
    return (top, min(right, behind), bottom, min(left, before))
