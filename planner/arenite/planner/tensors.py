"""Tensors: the values that flow through a program, free of any file format."""

import math
from dataclasses import dataclass
from enum import StrEnum

from arenite.planner.dtypes import DType
from arenite.planner.errors import ModelError
from arenite.planner.memory import ARENA


class TensorKind(StrEnum):
    """What a tensor is to the program, which decides how long it lives."""

    INPUT = "input"
    """Written by the caller before step 0."""
    OUTPUT = "output"
    """Read by the caller after the last step."""
    ACTIVATION = "activation"
    """Made and used between two steps."""
    CONSTANT = "constant"
    """Known before the run; never in the arena."""
    STATE = "state"
    """Kept from one run to the next; in the arena throughout."""
    SCRATCH = "scratch"
    """Working memory of one step."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A tensor's storage lies inside another's.

    Attributes:
        tensor: The tensor whose storage is used.
        offset: First byte inside that storage.
    """

    tensor: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Quantisation:
    """How integers stand for numbers: scale * (q - zero_point).

    Attributes:
        scales: One, or one for each index of `axis`.
        zero_point: The integer that stands for 0.
        axis: The stored axis that `scales` belong to, if they are many.
    """

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that flows through the program.

    Attributes:
        name: Unique in the program.
        dtype: Element type.
        shape: Of the axes as they are stored, outermost first; every dimension known.
        kind: What it is to the program.
        alias: Where it lies when it has no storage of its own. One that no step writes is a
            view: it holds the bytes that are there.
        quantisation: How its integers stand for numbers, if they do.
        memory: Name of the memory that its storage lies in; a constant lies in none.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    kind: TensorKind = TensorKind.ACTIVATION
    alias: Alias | None = None
    quantisation: Quantisation | None = None
    memory: str = ARENA

    def __post_init__(self) -> None:
        if any(dimension < 0 for dimension in self.shape):
            raise ModelError(f"tensor {self.name!r}: negative dimension in {self.shape}")

    @property
    def num_elements(self) -> int:
        """Elements it holds."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self.dtype.num_bytes(self.num_elements)
