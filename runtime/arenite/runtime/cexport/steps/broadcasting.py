"""How the elements of two operands meet in rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from arenite.planner.tensors import Tensor
from arenite.runtime.cexport.errors import NotWrittenError


@dataclass(frozen=True, slots=True)
class Meeting:
    """Rows of a result, and how the operands repeat for them.

    Attributes:
        rows: Number of rows.
        width: Elements of a row.
        pitches: For each operand, elements from one row to the next.
        steps: For each operand, 1, or 0 where one element serves a whole row.
    """

    rows: int
    width: int
    pitches: tuple[int, ...]
    steps: tuple[int, ...]


def meet(operands: Sequence[Tensor], result: Tensor, rows: tuple[int, int]) -> Meeting:
    """Return how operands that broadcast to a result meet.

    Args:
        operands: The operands.
        result: The result.
        rows: Rows and elements of each where no operand repeats.

    Raises:
        NotWrittenError: They repeat along more than two axes in turn.
    """
    if all(each.shape == result.shape for each in operands):
        return Meeting(*rows, (rows[1],) * len(operands), (1,) * len(operands))
    groups: list[tuple[int, tuple[bool, ...]]] = []
    shapes = [each.shape[::-1] for each in operands]
    for lengths in list(zip_longest(result.shape[::-1], *shapes, fillvalue=1))[::-1]:
        length, *own = lengths
        if length == 1:
            continue
        if any(each not in (1, length) for each in own):
            raise NotWrittenError("its operands do not broadcast to its result")
        whole = tuple(each == length for each in own)
        if groups and groups[-1][1] == whole:
            groups[-1] = (groups[-1][0] * length, whole)
        else:
            groups.append((length, whole))
    if len(groups) > 2:
        raise NotWrittenError("its operands repeat along several axes")
    while len(groups) < 2:
        groups.insert(0, (1, (True,) * len(operands)))
    (count, outer), (width, inner) = groups
    pitches = tuple(
        (width if whole else 1) if varies else 0
        for varies, whole in zip(outer, inner, strict=True)
    )
    return Meeting(count, width, pitches, tuple(int(whole) for whole in inner))
