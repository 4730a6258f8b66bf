"""How a target counts memory."""

from dataclasses import dataclass

from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.rewrites.aliasing.kinds import AliasKind


@dataclass(frozen=True, slots=True)
class Rules:
    """How records are derived; order searches, compilers and verification use the same rules.

    Attributes:
        aliases: What may share storage.
        boundary: Whether the program's inputs and outputs lie in the arena.
        alignment: Bytes, a power of two, of every offset and size.
        capacity: Most bytes the arena may take; None for no limit.
        outlines: Whether records state which of their bytes are needed when.
    """

    aliases: tuple[AliasKind, ...] = ()
    boundary: Boundary = Boundary.INCLUDE
    alignment: int = DEFAULT_ALIGNMENT
    capacity: int | None = None
    outlines: bool = False
