"""From a program in its order to the records to place.

A tensor lives from the step that writes it to the last that reads it, its storage as
long as any tensor that lies in it. A step's inputs and outputs are live together.
"""

from arenite.planner.errors import SizeError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.outlines import moving_parts, outline
from arenite.planner.programs.program import Names, Program
from arenite.planner.programs.row_places import RowPlaces
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.programs.uses import Uses
from arenite.planner.sizes import Size, Tree, bounds, depends
from arenite.planner.tensors import Tensor, TensorKind, alignments, has_rows, row_bytes
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
    places = RowPlaces(program)
    _check_sizes(program, places)
    num_steps = max(1, len(program.steps))
    lifetimes = Uses.of(program).lifetimes()
    with_states = program.state_storages
    # What a state leaves of a larger storage is free between runs.
    outlines |= any(program.tensors[name].kind is not TensorKind.STATE for name in with_states)
    left_out: set[str] = set()
    if boundary is Boundary.EXCLUDE:
        names = (*program.input_tensors, *program.output_tensors)
        left_out = {program.root(name)[0] for name in names} - with_states
    members: dict[str, list[str]] = {}
    for name in program.tensors:
        members.setdefault(program.root(name)[0], []).append(name)
    aligned = alignments(program.memories, alignment)
    needed = Uses.of(program, by_tensor=True).lifetimes() if outlines or program.dimensions else {}
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
                outline=(
                    outline(program, places, needed, members[storage], size) if outlines else ()
                ),
                expression=_expression(
                    align_up(_spread(tensor), aligned[tensor.memory])
                    if program.dimensions and places.keeps(storage)
                    else size
                ),
                parts=tuple(moving_parts(program, places, needed, members[storage])),
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


def _check_sizes(program: Program, places: RowPlaces) -> None:
    """Check that what holds at the highest sizes holds at all: each tensor fits its storage.

    There may be fewer rows than the pieces of a band have: those beyond are not made, and those
    that no step reads are never there.
    """
    if not program.dimensions:
        return
    used = {name for step in program.steps for name in (*step.reads, *step.writes)}
    used |= {port.tensor for port in (*program.inputs, *program.outputs)}
    used |= {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    pieces = places.pieces.keys() | (program.tensors.keys() - used)
    for tensor in program.tensors.values():
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


def _spread(tensor: Tensor) -> int:
    """Return the bytes from the first to the last of rows that lie as at the highest sizes."""
    if not has_rows(tensor):
        return tensor.size
    row = row_bytes(tensor)
    return int(tensor.size) - int(row) + row


def _expression(size: int) -> Tree | None:
    return size.expression.tree if isinstance(size, Size) else None
