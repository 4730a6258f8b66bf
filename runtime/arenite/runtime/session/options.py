"""How a session runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

MAX_THREADS = 256
"""Most threads of a session: more than any machine's worth, few enough to start."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a session runs.

    Attributes:
        threads: Number of threads that run kernels.
        poison: Byte to fill dead memory with; None to leave it alone.
        guard: Whether to protect the pages around each memory.
        buffers: Memory supplied by the caller, by the name of the memory.
    """

    threads: int = 1
    poison: int | None = None
    guard: bool = False
    buffers: Mapping[str, NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads is {self.threads}; give 1 to {MAX_THREADS}")
        if isinstance(self.poison, bool) or not (self.poison is None or 0 <= self.poison < 256):
            raise ValueError(f"poison {self.poison!r} is not a byte, 0 to 255")
