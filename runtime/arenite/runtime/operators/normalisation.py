"""Groups of elements rescaled by what each amounts to."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.normalising import Normalising
from arenite.runtime.operators.base import RuntimeOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Normalising, RuntimeOperator):
    """Over the last axis, of beta times x; with `logarithm` the logarithm of it."""

    number: ClassVar[int] = 10

    logarithm: bool = False
    beta: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResponseNorm(RuntimeOperator):
    """Over `size` neighbours on the last axis."""

    number: ClassVar[int] = 13

    size: int
    alpha: float
    beta: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm(Normalising, RuntimeOperator):
    """Reads x, a scale and an optional bias of the last `num_axes` axes."""

    number: ClassVar[int] = 14

    epsilon: float
    num_axes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(Normalising, RuntimeOperator):
    """Reads x: N, ..., C, a scale and a bias of C."""

    number: ClassVar[int] = 15

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Norm(Normalising, RuntimeOperator):
    """Divides by the length along the last axis, at least epsilon."""

    number: ClassVar[int] = 16

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardmax(Normalising, RuntimeOperator):
    """One for the first of the largest elements along the last axis, zero for all others."""

    number: ClassVar[int] = 28
