"""How a target counts memory: storage that may be shared, and the owner of inputs and outputs."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_ALIGNMENT = 16


class Boundary(StrEnum):
    """Who owns the memory of the program's inputs and outputs."""

    INCLUDE = "include"
    """The arena, from step 0 to the last read and from the write to the end."""
    EXCLUDE = "exclude"
    """The caller, as in the tables of Pisarchyk and Lee."""


class AliasKind(StrEnum):
    """A way for tensors to share storage, each with its own switch."""

    VIEWS = "views"
    """Reshape and the like: another shape, the same bytes."""
    IN_PLACE = "in-place"
    """Element-wise results over an operand of the same type and shape, at its last use."""
    NORMALISATION = "normalisation"
    """Softmax and normalisation over an operand, at its last use."""
    REUSE_INPUTS = "reuse-inputs"
    """Program inputs may be overwritten too, after their last use."""
    SLICES = "slices"
    """Parts along the outermost axis, inside the tensor they are cut from."""
    CONCAT = "concat"
    """Inputs of a concatenation along the outermost axis, written inside its result; along
    another axis one of them, if the kernel spreads its rows in place."""
    OVERLAP = "overlap"
    """Results of sliding windows that overlap the operand, if kernels compute row by row."""


SAFE_KINDS = tuple(kind for kind in AliasKind if kind is not AliasKind.OVERLAP)
"""The kinds that are safe with any kernel that keeps the promises of its operator."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How records are derived; order searches, compilers and verification use the same rules.

    Attributes:
        aliases: Kinds of sharing of storage.
        boundary: Whether the program's inputs and outputs lie in the arena.
        alignment: Bytes, a power of two, of every offset and size.
        capacity: Most bytes the arena may take; None for no limit.
        outlines: Whether records state which of their bytes are needed when.
        by_rows: Names of steps that the target can run row by row, of a program for a range of
            sizes in bands.
    """

    aliases: tuple[AliasKind, ...] = ()
    boundary: Boundary = Boundary.INCLUDE
    alignment: int = DEFAULT_ALIGNMENT
    capacity: int | None = None
    outlines: bool = False
    by_rows: frozenset[str] = frozenset()
