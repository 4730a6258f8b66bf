"""Operators that normalise groups of elements."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators import Normalising, Operands
from arenite.runtime.operators.base import AlongLastAxes, RuntimeOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(AlongLastAxes, Normalising, RuntimeOperator):
    """Softmax of beta * x over the last axis, or its logarithm."""

    number: ClassVar[int] = 10

    logarithm: bool = False
    beta: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResponseNorm(AlongLastAxes, RuntimeOperator):
    """Normalises over `size` neighbours along the last axis."""

    number: ClassVar[int] = 13

    size: int
    alpha: float
    beta: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm(AlongLastAxes, Normalising, RuntimeOperator):
    """Reads x, a scale and an optional bias of the last `num_axes` axes.

    If it does not centre x, it divides by the root of the mean square.
    """

    number: ClassVar[int] = 14

    epsilon: float
    num_axes: int = 1
    centres: bool = True

    def num_whole_axes(self, operands: Operands) -> int:
        return self.num_axes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(Normalising, RuntimeOperator):
    """Reads x: N, ..., C, a scale and a bias of C."""

    number: ClassVar[int] = 15

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Norm(AlongLastAxes, Normalising, RuntimeOperator):
    """Divides by the Euclidean norm along the last axis, but at least by epsilon."""

    number: ClassVar[int] = 16

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardmax(Normalising, RuntimeOperator):
    """One for the first of the largest elements along the last axis, zero for all others."""

    number: ClassVar[int] = 28
