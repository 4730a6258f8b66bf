"""Which bytes of a storage are needed at which steps."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from arenite.planner.outline import Stair
from arenite.planner.program import Program
from arenite.planner.tensors import TensorKind


class Needs:
    """When each tensor of a program is written, read, or held for the caller.

    A byte is needed from the first to the last step at which some tensor that covers it is.

    Args:
        program: The program, its steps in their final order.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lifetimes: dict[str, tuple[int, int]] = {}
        num_steps = max(1, len(program.steps))
        for name in program.input_tensors:
            self._extend(name, 0, 1)
        for number, step in enumerate(program.steps):
            for name in (*step.reads, *step.writes):
                self._extend(name, number, number + 1)
        for name in program.output_tensors:
            self._extend(name, num_steps - 1, num_steps)

    def _extend(self, name: str, start: int, end: int) -> None:
        old_start, old_end = self._lifetimes.get(name, (start, end))
        self._lifetimes[name] = (min(old_start, start), max(old_end, end))

    def outline(self, storage: str, members: Sequence[str], size: int) -> tuple[Stair, ...]:
        """Return the stairs of a storage, () if all of it is needed throughout.

        It is cut where a tensor begins or ends; stretches side by side that are needed at the
        same steps become one stair. What rounding adds belongs to the last.

        Args:
            storage: Its name.
            members: The tensors that lie in it, itself among them.
            size: Its bytes, rounded up.

        Cost: O(n log n + the stretches in each tensor), n members.
        """
        program = self._program
        if any(program.tensors[name].kind is TensorKind.STATE for name in members):
            return ()
        lives: dict[tuple[int, int], tuple[int, int]] = {}  # by first byte and the one after
        for name in members:
            if name in self._lifetimes and program.tensors[name].size:
                first = program.root(name)[1]
                place = (first, first + program.tensors[name].size)
                lives[place] = _joined(lives.get(place), self._lifetimes[name])
        used = program.tensors[storage].size
        cuts = sorted({0, used, *(byte for place in lives for byte in place)})
        needed: list[tuple[int, int] | None] = [None] * (len(cuts) - 1)
        for (first, last), life in lives.items():
            for index in range(bisect_left(cuts, first), bisect_left(cuts, last)):
                needed[index] = _joined(needed[index], life)
        stairs: list[Stair] = []
        for (first, last), its in zip(pairwise(cuts), needed, strict=True):
            if its is not None:
                stretch = Stair(first, (size if last == used else last) - first, *its)
                before = stairs.pop() if stairs and _continues(stairs[-1], stretch) else None
                stairs.append(stretch if before is None else _both(before, stretch))
        return () if len(stairs) == 1 and stairs[0].size == size else tuple(stairs)


def _joined(one: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int]:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]))


def _continues(before: Stair, stretch: Stair) -> bool:
    """Tell whether a stretch begins where the stair ends, and lives as long."""
    return (before.offset + before.size, before.start, before.end) == (
        stretch.offset,
        stretch.start,
        stretch.end,
    )


def _both(below: Stair, above: Stair) -> Stair:
    return replace(below, size=below.size + above.size)
