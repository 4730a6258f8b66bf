"""Tensors: the values that flow through a program, free of any file format."""

import math
from dataclasses import dataclass
from enum import StrEnum

from arenite.planner.dtypes import DType
from arenite.planner.errors import ModelError
from arenite.planner.memory import ARENA


class TensorKind(StrEnum):
    """The role of a tensor in the program, which decides how long it lives."""

    INPUT = "input"
    """Written by the caller before step 0."""
    OUTPUT = "output"
    """Read by the caller after the last step."""
    ACTIVATION = "activation"
    """Written by one step and read by later ones."""
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
    """How integers represent real numbers: scale * (q - zero_point).

    Attributes:
        scales: One scale, or one for each index of `axis`.
        zero_point: The integer that represents 0.
        axis: The stored axis that the scales belong to, if there are several.
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
        shape: Lengths of the axes as stored, outermost first; all of them known.
        kind: Its role in the program.
        alias: Where it lies if it has no storage of its own. A tensor with an alias that no
            step writes is a view: it holds the bytes that are there.
        quantisation: How its integers represent real numbers, if they do.
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
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self.dtype.num_bytes(self.num_elements)
