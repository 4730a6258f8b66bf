"""Memories: where tensors and records lie. One is the ordinary case."""

from collections.abc import Iterable
from dataclasses import dataclass

from arenite.planner.errors import ModelError

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
    """Return by memory what its records are aligned to: no less than the memory itself."""
    return {memory.name: max(alignment, memory.alignment) for memory in memories}
