"""Filters that are made in the run: packed for a convolution, and their gradients."""

import math
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import Pair, RuntimeOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFilter(RuntimeOperator):
    """Reads a filter of floats, Cout, Cin / groups, kh, kw, and packs it for a Conv2D.

    Makes panels, kh, kw, Cin / groups, 16: for weights that are made in the run.
    """

    number: ClassVar[int] = 36

    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightGradient(RuntimeOperator):
    """Reads x, and the gradient of a Conv2D of it: the gradient of the filter.

    Makes Cout, Cin / groups, kh, kw. `before` are the rows and columns of padding at the start.
    """

    number: ClassVar[int] = 37

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    before: Pair = (0, 0)
    groups: int = 1

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the pixels that each sums up."""
        gradient, result = operands.input(1), operands.result
        if gradient is None or result is None or len(gradient.shape) != 4:
            return 0
        return result.num_elements * math.prod(gradient.shape[:3])
