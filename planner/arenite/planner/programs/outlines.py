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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from arenite.planner.operators.bands import Band
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import MovingPart
from arenite.planner.programs.program import Program
from arenite.planner.programs.uses import Lifetime
from arenite.planner.sizes import Expression, Tree, bounds, depends, same, same_lengths, smallest
from arenite.planner.tensors import ROW_AXIS, Tensor, TensorKind, row_bytes


def pieces_of(program: Program) -> frozenset[str]:
    """Return the names of tensors that are rows of others."""
    return frozenset(
        name
        for step in program.steps
        if isinstance(step.operator, Band)
        for name, pieces in step.operator.pieces_by_name(step.inputs, step.outputs)
        if pieces.firsts
    )


def apart_of(program: Program) -> frozenset[str]:
    """Return the tensors of which steps touch rows alone: these need not lie end to end.

    Of tensors that lie in one place, as a result lies on the operand that it overwrites, all are
    touched by rows or none. Parts of a tensor and views with other rows lie end to end as it does.
    """
    pieces = pieces_of(program)
    touched = {name for step in program.steps for name in (*step.reads, *step.writes)}
    touched |= {port.tensor for port in (*program.inputs, *program.outputs)}
    wholes: set[str] = set()
    pairs: list[tuple[str, str]] = []
    for name, tensor in program.tensors.items():
        if tensor.kind is TensorKind.STATE:
            touched.add(name)
        if tensor.alias is None:
            continue
        if name in pieces:
            wholes.add(tensor.alias.tensor)
        elif _lies_as(tensor, program.tensors[tensor.alias.tensor]):
            pairs.append((name, tensor.alias.tensor))
        else:
            touched |= {name, tensor.alias.tensor}
    of_one_place = _joined_sets(pairs)
    for name in wholes:
        together = of_one_place.get(name, {name})
        if not touched.isdisjoint(together):
            touched |= together
    return frozenset(wholes - touched - pieces)


def _lies_as(tensor: Tensor, storage: Tensor) -> bool:
    """Tell whether a tensor has the rows of the one that it lies in, at their places."""
    return (
        tensor.alias is not None
        and same(tensor.alias.offset, 0)
        and tensor.dtype is storage.dtype
        and same_lengths(tensor.shape, storage.shape)
    )


def _joined_sets(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return for each name all that pairs connect it with."""
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        joined = found.get(one, {one}) | found.get(other, {other})
        found.update(dict.fromkeys(joined, joined))
    return found


def outline(
    program: Program,
    needed: Mapping[str, Lifetime],
    members: Sequence[str],
    size: int,
    pieces: Collection[str],
    apart: Collection[str] = (),
) -> tuple[Stair, ...]:
    """Return the stairs of a storage, () if all of it is needed throughout.

    A byte is needed from a step that writes it to the last that reads it before it is written
    again. The storage is cut where a tensor begins or ends; neighbouring stretches that are needed
    at the same steps become one stair for each time. The bytes that rounding adds belong to the
    last.

    Args:
        needed: Lifetimes of its tensors.
        size: Bytes of the storage, rounded up.
        pieces: Tensors that are rows of others.
        apart: Tensors whose rows need not lie end to end.

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
            place = _reach(program, name, pieces, apart) or (0, used)
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
    program: Program,
    needed: Mapping[str, Lifetime],
    members: Sequence[str],
    pieces: Collection[str],
    apart: Collection[str],
) -> Iterator[MovingPart]:
    """Yield the tensors of a storage whose place depends on the sizes of a run.

    Args:
        needed: Lifetimes of the tensors.
        pieces: Tensors that are rows of others.
        apart: Tensors whose rows need not lie end to end.
    """
    for name in members:
        _, offset = program.root(name)
        if name not in needed or not depends(offset):
            continue
        if _stays(program, name, pieces, apart):
            continue
        stop = offset + program.tensors[name].size
        if name in pieces:  # of which there may be fewer rows
            first, whole, begin = _row(program, name)
            rows = whole.shape[ROW_AXIS]
            offset, stop = (
                begin + smallest(row, rows) * row_bytes(whole)
                for row in (first, first + program.tensors[name].shape[ROW_AXIS])
            )
        life = needed[name].among(max(1, len(program.steps)))
        yield MovingPart(name, _tree(offset), _tree(stop), *life)


def _tree(size: int) -> Tree:
    return Expression.of(size).tree


def _stays(program: Program, name: str, pieces: Collection[str], apart: Collection[str]) -> bool:
    """Tell whether rows lie where they do at the highest sizes, as those do that they replace."""
    alias = program.tensors[name].alias
    if name not in pieces or alias is None:
        return False
    return alias.tensor in pieces or alias.tensor in apart


def _row(program: Program, piece: str) -> tuple[int, Tensor, int]:
    """Return the first row of a piece, its tensor, and where that begins in the storage."""
    alias = program.tensors[piece].alias
    assert alias is not None
    whole = program.tensors[alias.tensor]
    return alias.offset // row_bytes(whole), whole, program.root(whole.name)[1]


def _reach(
    program: Program, name: str, pieces: Collection[str], apart: Collection[str]
) -> tuple[int, int] | None:
    """Return the bytes of its storage that a tensor may take at some size, None if any.

    Of a tensor that fits its storage at all sizes.
    """
    tensor = program.tensors[name]
    _, offset = program.root(name)
    place = int(offset), int(offset) + int(tensor.size)
    if not depends(offset) or _stays(program, name, pieces, apart):
        return place
    if name not in pieces:
        stop = offset + tensor.size
        if not depends(stop):
            return place
        return bounds(offset, program.dimensions)[0], bounds(stop, program.dimensions)[1]
    _, whole, begin = _row(program, name)
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
