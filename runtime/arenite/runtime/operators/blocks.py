"""Operators that read weights of 4 or 8 bits in blocks.

A matrix of `out` rows of `inputs` weights is stored in panels of 16 rows. A block is some weights
of one row that follow one another; it has one scale and one zero point: a weight is
(code - zero) * scale.

    codes        panels, blocks, words of a block, 64 bytes: of each of 16 rows a word of 32 bits,
                 which holds 8 or 4 codes, the first lowest
    scales       panels, blocks, 16: floats of 32 or 16 bits
    zero points  panels, blocks, 16: bytes or floats of 32 bits; without them 8, or 128 for 8 bits
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from arenite.planner.operators import Operands
from arenite.planner.units import align_up
from arenite.runtime.operators.base import FLOAT_BYTES, UNSTORED, AlongLastAxes, RuntimeOperator

_ROWS_AT_ONCE = 48
"""Rows that the kernel multiplies together at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockProduct(AlongLastAxes, RuntimeOperator):
    """Multiplies rows by weights that are stored in blocks.

    Reads x: ..., inputs, floats; codes; scales; optional zero points; and an optional bias: out.
    The weights are constants, or windows that earlier steps of LoadWeights filled.

    With `rounds` each block of a row is rounded to integers of 8 bits with a scale, in the working
    memory, and sums of a block are integers: the core does so where a step has such memory.
    """

    number: ClassVar[int] = 48
    moves_halves: ClassVar[bool] = True  # as scales alone, which its kernel converts

    bits: int
    block: int
    rounds: bool = field(default=False, metadata={UNSTORED: True})

    def loaded_inputs(self) -> tuple[int, ...]:
        return (1, 2, 3)

    def multiply_adds(self, operands: Operands) -> int:
        source, result = operands.source, operands.result
        if source is None or result is None or not source.shape:
            return 0
        return result.num_elements * source.shape[-1]

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of rounded rows: integers, and a scale and a sum for each block."""
        source = operands.source
        if not self.rounds or source is None or not source.shape:
            return 0
        blocks = -(-source.shape[-1] // self.block)
        rows = int(math.prod(source.shape[:-1]))  # the highest of a range
        return min(rows, _ROWS_AT_ONCE) * blocks * (self.block + 2 * FLOAT_BYTES)

    def row_scratch(self, operands: Operands) -> int:
        return self.kernel_scratch(operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGather(RuntimeOperator):
    """Reads rows of a matrix whose weights are stored in blocks, as floats.

    Reads indices of rows; codes; scales; and optional zero points. Makes y: the shape of the
    indices, inputs. The matrix has `rows` rows.
    """

    number: ClassVar[int] = 49
    moves_halves: ClassVar[bool] = True
    looks_up: ClassVar[bool] = True

    bits: int
    block: int
    rows: int

    def bytes_touched(self, operands: Operands) -> int:
        """Return the bytes of the indices, of the rows that are read, and of the result."""
        source, result = operands.source, operands.result
        if source is None or result is None or not result.shape:
            return 0
        codes = math.prod(source.shape) * align_up(result.shape[-1], self.block) * self.bits // 8
        return source.size + codes + result.size
