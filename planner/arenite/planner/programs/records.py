"""From a program in its order to the records to place.

A tensor lives from the step that writes it to the last that reads it, its storage as
long as any tensor that lies in it. A step's inputs and outputs are live together.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from arenite.planner.errors import SizeError
from arenite.planner.operators.bands import Band
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.program import Names, Program
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.programs.uses import Lifetime, Uses
from arenite.planner.sizes import Size, Tree, bounds, depends
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

    Raises:
        SizeError: A tensor is larger at some size than at the highest ones, or larger than the
            storage that it lies in.

    Cost: O(tensors + operands of the steps); with outlines, for each storage also
        O(its tensors x the stretches that they cut it into).
    Source: Pisarchyk and Lee, arXiv 2001.03288, section 3 (tensor usage records).
    """
    _check_sizes(program)
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
                size=int(size),
                start=start,
                end=end,
                alignment=aligned[tensor.memory],
                tensors=tuple(members[storage]),
                layout=(tensor.dtype.bits, *map(int, tensor.shape)),
                memory=tensor.memory,
                outline=_outline(program, needed, members[storage], size) if outlines else (),
                expression=_expression(size),
            )
        )
    names_in_use = Names(program.tensors)
    workplace = program.memories[0].name
    for number, step in enumerate(program.steps):
        scratch = step.operator.scratch(program.operands(step))
        if scratch:
            size = align_up(scratch, aligned[workplace])
            records.append(
                UsageRecord(
                    name=names_in_use.take(f"{step.name}/scratch"),
                    size=int(size),
                    start=number,
                    end=number + 1,
                    alignment=aligned[workplace],
                    memory=workplace,
                    expression=_expression(size),
                )
            )
    records.sort(key=lambda record: record.start)
    steps = tuple(step.name for step in program.steps)
    problem = Problem(tuple(records), steps, program.memories)
    return problem if capacity is None else problem.with_capacity(capacity)


def _check_sizes(program: Program) -> None:
    """Check that what holds at the highest sizes holds at all: each tensor fits its storage.

    There may be fewer rows than the pieces of a band have: those beyond are not made, and those
    that no step reads are never there.
    """
    pieces = {
        name
        for step in program.steps
        if isinstance(step.operator, Band)
        for name, _ in step.operator.pieces_by_name(step.inputs, step.outputs)
    }
    used = {name for step in program.steps for name in (*step.reads, *step.writes)}
    used |= {port.tensor for port in (*program.inputs, *program.outputs)}
    used |= {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    pieces |= program.tensors.keys() - used
    for tensor in program.tensors.values() if program.dimensions else ():
        if not depends(tensor.size) and (tensor.alias is None or not depends(tensor.alias.offset)):
            continue
        least, most = bounds(tensor.size, program.dimensions)
        if least < 0 or most > tensor.size:
            raise SizeError(
                f"tensor {tensor.name!r} takes {least} to {most} B, and {int(tensor.size)} B at "
                "the highest sizes; no tensor may be larger than there"
            )
        if tensor.alias is not None and tensor.name not in pieces:
            storage = program.tensors[tensor.alias.tensor]
            first = tensor.alias.offset
            rest = storage.size - first - tensor.size
            if bounds(rest, program.dimensions)[0] < 0 or bounds(first, program.dimensions)[0] < 0:
                raise SizeError(
                    f"tensor {tensor.name!r}: at some size its bytes are not inside "
                    f"{storage.name!r}"
                )


def _expression(size: int) -> Tree | None:
    return size.expression.tree if isinstance(size, Size) else None


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
    if any(depends(program.root(name)[1]) for name in members):
        return ()  # at smaller sizes they begin elsewhere
    size = int(size)
    num_steps = max(1, len(program.steps))
    lives: dict[tuple[int, int], Lifetime] = {}  # by first byte and the one after
    for name in members:
        if name in needed and program.tensors[name].size:
            first = program.root(name)[1]
            place = (first, first + int(program.tensors[name].size))
            lives[place] = _joined(lives.get(place), needed[name].among(num_steps))
    used = int(program.tensors[program.root(members[0])[0]].size)
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
