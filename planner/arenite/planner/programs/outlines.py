"""Which bytes of a storage are needed when, and what moves in it from size to size.

Tensors that lie in parts of a storage come and go. Where the place of a tensor depends on the
sizes of a run, an outline counts the bytes that it takes at any of them.

The rows of a tensor lie end to end at every size, so with shorter rows each begins at a lower
byte. A row then takes bytes of those before it::

    highest size   |---- row 0 ----|---- row 1 ----|---- row 2 ----|
    smaller size   |- row 0 -|- row 1 -|- row 2 -|

Where the tensor ends at the same byte at every size, a row takes bytes of those behind it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import MovingPart
from arenite.planner.programs.program import Program
from arenite.planner.programs.row_places import RowPlaces
from arenite.planner.programs.uses import Lifetime
from arenite.planner.sizes import Expression, Tree, bounds, depends, smallest
from arenite.planner.tensors import ROW_AXIS, Tensor, TensorKind, row_bytes


def outline(
    program: Program,
    places: RowPlaces,
    needed: Mapping[str, Lifetime],
    members: Sequence[str],
    size: int,
) -> tuple[Stair, ...]:
    """Return the stairs of a storage, () if all of it is needed throughout.

    A byte is needed from a step that writes it to the last that reads it before it is written
    again. The storage is cut where a tensor begins or ends; neighbouring stretches that are needed
    at the same steps become one stair for each time. The bytes that rounding adds belong to the
    last.

    Args:
        places: Where rows lie at other sizes than the highest.
        needed: Lifetimes of its tensors.
        size: Bytes of the storage, rounded up.

    Cost: O(n log n + the stretches in each tensor), n members.
    """
    storage = program.tensors[program.root(members[0])[0]]
    if storage.kind is TensorKind.STATE:
        return ()
    size, used = int(size), int(storage.size)
    num_steps = max(1, len(program.steps))
    lives: dict[tuple[int, int], list[_Life]] = {}  # by first byte and the one after
    for name in members:
        if name in needed and program.tensors[name].size:
            place = _reach(program, places, name) or (0, used)
            life = needed[name]
            begins = _is_made(program, name, life.start)
            lives.setdefault(place, []).append((*life.among(num_steps), begins))
    cuts = sorted({0, used, *(byte for place in lives for byte in place)})
    stretches: list[list[_Life]] = [[] for _ in cuts[1:]]
    for (first, last), own in lives.items():
        for index in range(bisect_left(cuts, first), bisect_left(cuts, last)):
            stretches[index] += own
    stairs: list[Stair] = []
    below: list[Stair] = []
    for (first, last), own in zip(pairwise(cuts), stretches, strict=True):
        stop = size if last == used else last
        here = [Stair(first, stop - first, *life) for life in _times(own)]
        if here and len(here) == len(below) and all(map(_continues, below, here)):
            here = [replace(each, size=each.size + stop - first) for each in below]
            del stairs[-len(below) :]
        stairs += here
        below = here
    return () if len(stairs) == 1 and stairs[0].size == size else tuple(stairs)


_Life: TypeAlias = tuple[int, int, bool]
"""First step of a tensor, the step after its last, and whether the first one makes it."""


def _is_made(program: Program, name: str, step: int) -> bool:
    """Tell whether a step writes all bytes of a tensor, at every size, and reads none of them."""
    if not 0 <= step < len(program.steps):
        return False
    tensor = program.tensors[name]
    if depends(tensor.size) or depends(program.root(name)[1]):
        return False
    return name in program.steps[step].writes and name not in program.steps[step].reads


def _times(lives: Iterable[_Life]) -> Iterator[Lifetime]:
    """Yield the times at which bytes are needed that several tensors cover, in order.

    They are free between the last use of one tensor and the step that makes the next.
    """
    found: Lifetime | None = None
    # Of tensors that begin at one step, those that it does not make come first.
    for start, end, is_made in sorted(lives, key=lambda life: (life[0], life[2])):
        if found is not None and is_made and start >= found.end:
            yield found
            found = None
        found = _joined(found, Lifetime(start, end))
    if found is not None:
        yield found


def moving_parts(
    program: Program, places: RowPlaces, needed: Mapping[str, Lifetime], members: Sequence[str]
) -> Iterator[MovingPart]:
    """Yield the tensors of a storage whose place depends on the sizes of a run.

    Args:
        places: Where rows lie at other sizes than the highest.
        needed: Lifetimes of the tensors.
    """
    for name in members:
        _, offset = program.root(name)
        if name not in needed or not depends(offset):
            continue
        stop = offset + program.tensors[name].size
        if name in places.pieces:  # of which there may be fewer rows
            if places.keeps(name):
                continue
            whole, begin = _holder(program, places, name)
            rows = whole.shape[ROW_AXIS]
            first = places.pieces[name].row
            offset, stop = (
                begin + smallest(row, rows) * row_bytes(whole)
                for row in (first, first + program.tensors[name].shape[ROW_AXIS])
            )
        life = needed[name].among(max(1, len(program.steps)))
        yield MovingPart(name, _tree(offset), _tree(stop), *life)


def _tree(size: int) -> Tree:
    return Expression.of(size).tree


def _holder(program: Program, places: RowPlaces, piece: str) -> tuple[Tensor, int]:
    """Return the tensor that a piece moves in, and where that begins in the storage."""
    name = places.holder(piece)
    assert name is not None
    return program.tensors[name], program.root(name)[1]


def _reach(program: Program, places: RowPlaces, name: str) -> tuple[int, int] | None:
    """Return the bytes of its storage that a tensor may take at some size, None if any.

    Of a tensor that fits its storage at all sizes.
    """
    tensor = program.tensors[name]
    _, offset = program.root(name)
    place = int(offset), int(offset) + int(tensor.size)
    if not depends(offset):
        return place
    if name not in places.pieces:
        stop = offset + tensor.size
        if not depends(stop):
            return place
        return bounds(offset, program.dimensions)[0], bounds(stop, program.dimensions)[1]
    if places.keeps(name):
        return place
    whole, begin = _holder(program, places, name)
    stop = begin + whole.size
    lengths = (whole.shape[ROW_AXIS], row_bytes(whole))
    if any(bounds(each, program.dimensions)[1] > each for each in lengths):
        return None
    if not depends(begin):
        return begin, place[1]
    return None if depends(stop) else (place[0], int(stop))


def _joined(one: Lifetime | None, other: Lifetime) -> Lifetime:
    return other if one is None else Lifetime(min(one.start, other.start), max(one.end, other.end))


def _continues(below: Stair, above: Stair) -> bool:
    """Tell whether a stair begins where the other ends, and lives as long."""
    return (below.offset + below.size, below.start, below.end) == (
        above.offset,
        above.start,
        above.end,
    )
