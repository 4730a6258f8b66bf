"""Tensors, their element types, and the memories that they lie in."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from arenite.planner.errors import ModelError


class DType(Enum):
    """An element type; the value is its name and the bits of one element.

    Sub-byte types are packed, two or more to a byte, without padding between rows.

    Attributes:
        label: The type's name, as in numpy where numpy has it.
        bits: Bits of one element.
    """

    label: str
    bits: int

    BOOL = ("bool", 8)
    INT2 = ("int2", 2)
    UINT2 = ("uint2", 2)
    INT4 = ("int4", 4)
    UINT4 = ("uint4", 4)
    FLOAT4E2M1 = ("float4e2m1", 4)
    INT8 = ("int8", 8)
    UINT8 = ("uint8", 8)
    FLOAT8E4M3FN = ("float8e4m3fn", 8)
    FLOAT8E4M3FNUZ = ("float8e4m3fnuz", 8)
    FLOAT8E5M2 = ("float8e5m2", 8)
    FLOAT8E5M2FNUZ = ("float8e5m2fnuz", 8)
    FLOAT8E8M0 = ("float8e8m0", 8)
    INT16 = ("int16", 16)
    UINT16 = ("uint16", 16)
    FLOAT16 = ("float16", 16)
    BFLOAT16 = ("bfloat16", 16)
    INT32 = ("int32", 32)
    UINT32 = ("uint32", 32)
    FLOAT32 = ("float32", 32)
    INT64 = ("int64", 64)
    UINT64 = ("uint64", 64)
    FLOAT64 = ("float64", 64)
    COMPLEX64 = ("complex64", 64)
    COMPLEX128 = ("complex128", 128)

    def __init__(self, label: str, bits: int) -> None:
        self.label = label  # stored, as planning asks for them hundreds of thousands of times
        self.bits = bits

    @classmethod
    def of_label(cls, label: str) -> "DType":
        """Return the type of a name.

        Raises:
            KeyError: No type has that name.
        """
        return _BY_LABEL[label]

    def num_bytes(self, num_elements: int) -> int:
        """Return the bytes that `num_elements` packed elements take."""
        return -(-num_elements * self.bits // 8)


_BY_LABEL = {dtype.label: dtype for dtype in DType}


ARENA = "arena"
"""Name of the memory, where there is only one."""
SPILLED = "spilled"
"""Name of the memory that tensors are spilled to."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stretch of bytes that records are placed in, addressed from 0.

    Attributes:
        name: Unique in the problem.
        capacity: Most bytes it may take; None for no limit.
        alignment: Alignment of its first byte, a power of two; no record in it may be
            aligned to less.
        writable: Whether a run may write to it.
    """

    name: str = ARENA
    capacity: int | None = None
    alignment: int = 1
    writable: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            raise ModelError("a memory has no name")
        if self.capacity is not None and self.capacity < 0:
            raise ModelError(f"memory {self.name!r}: capacity {self.capacity} B is below 0")
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ModelError(
                f"memory {self.name!r}: alignment {self.alignment} is not a power of two"
            )


def alignments(memories: Iterable[Memory], alignment: int) -> dict[str, int]:
    """Return the alignment of the records of each memory, at least that of the memory."""
    return {memory.name: max(alignment, memory.alignment) for memory in memories}


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
        shape: Lengths of the axes as stored, outermost first; all of them known.
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


ROW_AXIS = 1
"""The axis of rows of an image, which is stored N, H, W, C."""


def num_rows(tensor: Tensor) -> int:
    """Return its rows, at the highest sizes."""
    return int(tensor.shape[ROW_AXIS])


def row_bytes(tensor: Tensor) -> int:
    return tensor.size // tensor.shape[ROW_AXIS]


def has_rows(tensor: Tensor) -> bool:
    """Tell whether a tensor is an image of whole rows, not empty."""
    if len(tensor.shape) <= ROW_AXIS or tensor.shape[0] != 1 or tensor.size == 0:
        return False
    return tensor.size % tensor.shape[ROW_AXIS] == 0
