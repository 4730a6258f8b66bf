"""From a program in its order to the records to place.

A tensor lives from the step that writes it to the last that reads it, its storage as
long as any tensor that lies in it. A step's inputs and outputs are live together.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.program import Names, Program
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.programs.uses import Lifetime, Uses
from arenite.planner.tensors import TensorKind, alignments
from arenite.planner.units import align_up


def liveness(
    program: Program,
    *,
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
    capacity: int | None = None,
    outlines: bool = False,
) -> Problem:
    """Return the usage records of a program, its steps in their present order.

    The size of a record is rounded up to `alignment`, as runtimes reserve it. Constants and
    empty tensors have no record. Records are in order of first use, those of one step in
    order of mention.

    Args:
        boundary: Whether the program's inputs and outputs lie in the arena.
        alignment: Bytes, a power of two, of every offset; a memory may ask for more.
        capacity: Most bytes the arena may take; None for no limit.
        outlines: Whether a record states which of its bytes are needed when, where tensors
            that lie in parts of it come and go.

    Cost: O(tensors + operands of the steps); with outlines, for each storage also
        O(its tensors x the stretches that they cut it into).
    Source: Pisarchyk and Lee, arXiv 2001.03288, section 3 (tensor usage records).
    """
    num_steps = max(1, len(program.steps))
    lifetimes = Uses.of(program).lifetimes()
    left_out: set[str] = set()
    if boundary is Boundary.EXCLUDE:
        names = (*program.input_tensors, *program.output_tensors)
        left_out = {program.root(name)[0] for name in names}
    members: dict[str, list[str]] = {}
    for name in program.tensors:
        members.setdefault(program.root(name)[0], []).append(name)
    aligned = alignments(program.memories, alignment)
    needed = Uses.of(program, by_tensor=True).lifetimes() if outlines else {}
    records: list[UsageRecord] = []
    for storage, lifetime in lifetimes.items():
        tensor = program.tensors[storage]
        if tensor.size == 0 or storage in left_out:
            continue
        start, end = lifetime.among(num_steps)
        size = align_up(tensor.size, aligned[tensor.memory])
        records.append(
            UsageRecord(
                name=storage,
                size=size,
                start=start,
                end=end,
                alignment=aligned[tensor.memory],
                tensors=tuple(members[storage]),
                layout=(tensor.dtype.bits, *tensor.shape),
                memory=tensor.memory,
                outline=_outline(program, needed, members[storage], size) if outlines else (),
            )
        )
    names_in_use = Names(program.tensors)
    workplace = program.memories[0].name
    for number, step in enumerate(program.steps):
        scratch = step.operator.scratch(program.operands(step))
        if scratch:
            records.append(
                UsageRecord(
                    name=names_in_use.take(f"{step.name}/scratch"),
                    size=align_up(scratch, aligned[workplace]),
                    start=number,
                    end=number + 1,
                    alignment=aligned[workplace],
                    memory=workplace,
                )
            )
    records.sort(key=lambda record: record.start)
    steps = tuple(step.name for step in program.steps)
    problem = Problem(tuple(records), steps, program.memories)
    return problem if capacity is None else problem.with_capacity(capacity)


def _outline(
    program: Program, needed: Mapping[str, Lifetime], members: Sequence[str], size: int
) -> tuple[Stair, ...]:
    """Return the stairs of a storage, () if all of it is needed throughout.

    A byte is needed from the first to the last step at which some tensor that covers it is. The
    storage is cut where a tensor begins or ends; neighbouring stretches that are needed at the
    same steps become one stair. The bytes that rounding adds belong to the last.

    Args:
        needed: Lifetimes of its tensors.
        size: Bytes of the storage, rounded up.

    Cost: O(n log n + the stretches in each tensor), n members.
    """
    if any(program.tensors[name].kind is TensorKind.STATE for name in members):
        return ()
    num_steps = max(1, len(program.steps))
    lives: dict[tuple[int, int], Lifetime] = {}  # by first byte and the one after
    for name in members:
        if name in needed and program.tensors[name].size:
            first = program.root(name)[1]
            place = (first, first + program.tensors[name].size)
            lives[place] = _joined(lives.get(place), needed[name].among(num_steps))
    used = program.tensors[program.root(members[0])[0]].size
    cuts = sorted({0, used, *(byte for place in lives for byte in place)})
    stretches: list[Lifetime | None] = [None] * (len(cuts) - 1)
    for (first, last), life in lives.items():
        for index in range(bisect_left(cuts, first), bisect_left(cuts, last)):
            stretches[index] = _joined(stretches[index], life)
    stairs: list[Stair] = []
    for (first, last), its in zip(pairwise(cuts), stretches, strict=True):
        if its is not None:
            stair = Stair(first, (size if last == used else last) - first, *its)
            below = stairs[-1] if stairs else None
            if below is not None and _continues(below, stair):
                stairs[-1] = replace(below, size=below.size + stair.size)
            else:
                stairs.append(stair)
    return () if len(stairs) == 1 and stairs[0].size == size else tuple(stairs)


def _joined(one: Lifetime | None, other: Lifetime) -> Lifetime:
    return other if one is None else Lifetime(min(one.start, other.start), max(one.end, other.end))


def _continues(below: Stair, above: Stair) -> bool:
    """Tell whether a stair begins where the other ends, and lives as long."""
    return (below.offset + below.size, below.start, below.end) == (
        above.offset,
        above.start,
        above.end,
    )
