"""From a program in its order to the records to place.

A tensor lives from the step that writes it to the last that reads it, its storage as
long as any tensor that lies in it. A step's inputs and outputs are live together.
"""

from enum import StrEnum

from arenite.planner.memory import alignments
from arenite.planner.names import Names
from arenite.planner.needs import Needs
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.program import Program
from arenite.planner.tensors import TensorKind
from arenite.planner.units import align_up

DEFAULT_ALIGNMENT = 16


class Boundary(StrEnum):
    """Who owns the memory of the program's inputs and outputs."""

    INCLUDE = "include"
    """The arena, from step 0 to the last read and from the write to the end."""
    EXCLUDE = "exclude"
    """The caller, as in the tables of Pisarchyk and Lee."""


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
        program: The program; its steps run in the order given.
        boundary: Whether the program's inputs and outputs lie in the arena.
        alignment: Bytes, a power of two, of every offset; a memory may ask for more.
        capacity: Most bytes the arena may take; None for no limit.
        outlines: Whether a record states which of its bytes are needed when, where tensors
            that lie in parts of it come and go.

    Cost: O(tensors + operands of the steps); with outlines, for each storage also
        O(its tensors x the stretches that they cut it into).
    Source: Pisarchyk and Lee, arXiv 2001.03288, section 3 (tensor usage records).
    """
    lifetimes = _lifetimes(program)
    left_out: set[str] = set()
    if boundary is Boundary.EXCLUDE:
        names = (*program.input_tensors, *program.output_tensors)
        left_out = {program.root(name)[0] for name in names}
    members: dict[str, list[str]] = {}
    for name in program.tensors:
        members.setdefault(program.root(name)[0], []).append(name)
    aligned = alignments(program.memories, alignment)
    needs = Needs(program) if outlines else None
    records: list[UsageRecord] = []
    for storage, (start, end) in lifetimes.items():
        tensor = program.tensors[storage]
        if tensor.kind is TensorKind.CONSTANT or tensor.size == 0 or storage in left_out:
            continue
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
                outline=() if needs is None else needs.outline(storage, members[storage], size),
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


def _lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """Return for each storage in use its half-open lifetime, in order of first mention."""
    num_steps = max(1, len(program.steps))
    lifetimes: dict[str, tuple[int, int]] = {}

    def extend(name: str, start: int, end: int) -> None:
        storage, _ = program.root(name)
        old_start, old_end = lifetimes.get(storage, (start, end))
        lifetimes[storage] = (min(old_start, start), max(old_end, end))

    for name in program.input_tensors:
        extend(name, 0, 1)
    for tensor in program.tensors.values():
        if tensor.kind is TensorKind.STATE:
            extend(tensor.name, 0, num_steps)
    for number, step in enumerate(program.steps):
        for name in (*step.reads, *step.writes):
            extend(name, number, number + 1)
    for name in program.output_tensors:
        extend(name, num_steps - 1, num_steps)
    return lifetimes
