"""What a policy decides: which step runs when, how often, and which tensors leave meanwhile."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """One stay of a tensor in another memory. Numbers are places in the slots of a schedule.

    Attributes:
        tensor: Name of the tensor that owns the storage.
        leaves: The copy out starts before this slot; None if an earlier stay left a copy there.
        gone: Before this slot the copy is waited for, and the bytes are free.
        returns: The copy back starts before this slot, and takes bytes from then on.
        back: Before this slot, the next that reads it, the copy back is waited for.
        moved: Bytes that are expected to cross the link each way; None for all.
    """

    tensor: str
    leaves: int | None
    gone: int
    returns: int
    back: int
    moved: int | None = None

    def __post_init__(self) -> None:
        leaves = self.gone if self.leaves is None else self.leaves
        if not 0 <= leaves <= self.gone <= self.returns <= self.back:
            raise ValueError(f"{self}: it must leave, be gone, return and be back in this order")


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of steps with repetitions, and the moves meanwhile.

    A step reads the latest instance of each tensor. An instance is live up to its last reader
    before the next; when it dies is never written down.

    Attributes:
        slots: Indices of the program's steps; steps that are views are left out, they come
            along with what they view.
        moves: In any order; those of one tensor do not overlap.
    """

    slots: tuple[int, ...]
    moves: tuple[Move, ...] = ()
