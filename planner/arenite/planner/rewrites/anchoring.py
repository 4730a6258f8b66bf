"""Let tensors whose rows die one after another end at the same byte at every size.

At smaller sizes a tensor has the front of its storage. If its first rows make room for others
while the rows behind them are needed, these must not move there: see `programs.outlines`. Such a
tensor gets a storage of its highest size, at whose end it lies at all sizes.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from arenite.planner.placement.outline import Stair
from arenite.planner.programs.outlines import outline
from arenite.planner.programs.program import Names, Program
from arenite.planner.programs.row_places import RowPlaces
from arenite.planner.programs.uses import Uses
from arenite.planner.sizes import Size
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind

_MOST_PLACES = 1 << 22
"""Places of rows that may be tried to prove a storage, one for each of its pieces and sizes."""


def anchor(program: Program) -> Program:
    """Return the program with storages aligned at their ends where outlines are smaller then.

    Rows that cannot move with those that they replace do not replace them (`RowPlaces.parted`).

    Args:
        program: The program, its storage shared.

    Cost: O(tensors + operands of the steps), and the cost of the outlines of storages that have
        rows of others in them.
    """
    program = RowPlaces(program).parted()
    places = RowPlaces(program)
    members: dict[str, list[str]] = {}
    for name in program.tensors:
        members.setdefault(program.root(name)[0], []).append(name)
    roots = [
        root
        for root in {program.root(name)[0]: None for name in places.pieces}
        if root not in places.pieces and _may_move(program, root, len(members[root]))
    ]
    if not roots:
        return program
    names = Names(program.tensors)
    storages = {root: names.take(f"{root}/storage") for root in roots}
    moved = _anchored(program, storages)
    moved_places = RowPlaces(moved)
    needed = Uses.of(program, by_tensor=True).lifetimes()

    def area(of: Program, places: RowPlaces, root: str) -> int:
        """Return bytes times steps, of tensors that are needed."""
        within = [*([storages[root]] if of is moved else []), *members[root]]
        size = int(program.tensors[root].size)
        lives = [needed[name] for name in members[root] if name in needed]
        whole = Stair(0, size, min(e.start for e in lives), max(e.end for e in lives))
        stairs = outline(of, places, needed, within, size) or (whole,)
        return sum(each.size * (each.end - each.start) for each in stairs)

    lower = [
        root for root in roots if area(moved, moved_places, root) < area(program, places, root)
    ]
    return _anchored(program, {root: storages[root] for root in lower})


def _may_move(program: Program, root: str, num_members: int) -> bool:
    """Tell whether a storage varies in size, and may end at one byte."""
    tensor = program.tensors[root]
    if tensor.kind in (TensorKind.STATE, TensorKind.CONSTANT) or not isinstance(tensor.size, Size):
        return False
    used = [each for each in program.dimensions if each.name in tensor.size.expression.names]
    places = math.prod(map(len, used)) * num_members
    return places <= _MOST_PLACES and not any(each.counted_by for each in used)


def _anchored(program: Program, storages: Mapping[str, str]) -> Program:
    """Return the program with storages, by the name of a new one, at its end."""
    if not storages:
        return program
    tensors = dict(program.tensors)
    for root, name in storages.items():
        tensor = tensors[root]
        size = int(tensor.size)
        tensors[name] = Tensor(
            name, DType.UINT8, (size,), TensorKind.SCRATCH, memory=tensor.memory
        )
        tensors[root] = replace(tensor, alias=Alias(name, size - tensor.size))
    return replace(program, tensors=tensors)
