"""Products of matrices, with weights and of two tensors."""

from dataclasses import dataclass, field
from typing import ClassVar

from arenite.planner.operators import Along, Operands, Region
from arenite.planner.units import align_up
from arenite.runtime.operators.base import (
    FLOAT_BYTES,
    PANEL,
    UNSTORED,
    RuntimeOperator,
    makes_one_image,
)
from arenite.runtime.operators.convolution import Convolution, filter_of

_ROWS_BY_ROW = 4
"""Rows that are multiplied with weights of 16-bit floats where these lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullyConnected(Convolution):
    """Reads x: ..., in; weights: out, in; an optional bias, and an optional addend.

    In floating point the weights are packed: panels, in, 16; and they are a constant, or a tensor
    inside a window that an earlier LoadWeights filled. Integers may be packed too: panels,
    1 + quads, 64.

    Floats may be multiplied after `strassen`, by sums of weights in `tile_scratch` bytes, if any.
    """

    number: ClassVar[int] = 4
    widens_filter: ClassVar[bool] = True
    SUMMED_DEPTH: ClassVar[int] = 256

    strassen: bool = False
    tile_scratch: int = field(default=0, metadata={UNSTORED: True})

    def widens_panels(self, operands: Operands) -> bool:
        """Tell whether there are more rows than the kernel multiplies with weights as they lie."""
        result = operands.result
        return result is not None and int(result.num_elements) > _ROWS_BY_ROW * result.shape[-1]

    def loaded_inputs(self) -> tuple[int, ...]:
        return (1,)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of sums of weights."""
        return self.tile_scratch

    def multiply_adds(self, operands: Operands) -> int:
        source, result = operands.source, operands.result
        if source is None or result is None or not source.shape:
            return 0
        return result.num_elements * source.shape[-1]

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same rows of the first input, and the whole of other inputs."""
        source = operands.source
        if position or source is None or len(region) != len(source.shape):
            # Not super(): a dataclass with slots is a copy of the class that this names.
            return Convolution.input_region(self, operands, position, region)
        return (*region[:-1], (0, source.shape[-1]))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "FullyConnected | None":
        """Return the same, unless rows are among what each product takes."""
        source = operands.source
        return self if source is not None and along.axis < len(source.shape) - 1 else None

    def makes_rows(self, operands: Operands) -> bool:
        weights, source, result = filter_of(operands, 2, 3), operands.source, operands.result
        if weights is None or source is None or result is None or not makes_one_image(operands):
            return False
        return source.shape[:-1] == result.shape[:-1]

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        return filter_of(operands, 3) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul(RuntimeOperator):
    """Multiplies the matrices of the last two axes; the leading axes broadcast.

    Reads a: ..., m, k and b: ..., k, n.
    """

    number: ClassVar[int] = 5

    transpose_a: bool = False
    transpose_b: bool = False

    def multiply_adds(self, operands: Operands) -> int:
        source, result = operands.source, operands.result
        if source is None or result is None or len(source.shape) < 2:
            return 0
        return result.num_elements * source.shape[-2 if self.transpose_a else -1]

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of the second matrix, packed in panels of columns for several rows."""
        other, result = operands.input(1), operands.result
        if other is None or len(other.shape) < 2 or result is None or result.shape[-2] == 1:
            return 0
        rows, columns = other.shape[-2:]
        if self.transpose_b:
            rows, columns = columns, rows
        return FLOAT_BYTES * align_up(columns, PANEL) * rows
