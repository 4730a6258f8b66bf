"""Transforms of signals."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import RuntimeOperator

_COMPLEX_BYTES = 16
"""Of two 64-bit floats, in which it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfft2D(RuntimeOperator):
    """Fourier's transform of the last two axes of real numbers.

    Reads x: ..., rows and columns, cut or filled up with zeros to those of the transform, which
    are powers of 2. Makes y: ..., rows, columns / 2 + 1, 2: the real and the imaginary part.
    """

    number: ClassVar[int] = 30

    rows: int
    columns: int

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of a row or column, and of all of them if there are several rows."""
        line = max(self.rows, self.columns // 2)
        grid = self.rows * (self.columns // 2 + 1) if self.rows > 1 else 0
        return _COMPLEX_BYTES * (line + grid)
