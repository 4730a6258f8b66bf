"""A program as policies see it: steps and storages by number, and the time of each step."""

from dataclasses import dataclass
from typing import Self

from arenite.planner import Costs, Program, TensorKind
from arenite.planner.programs import Uses
from arenite.planner.rewrites import ALIGNMENT, Reschedulable, with_views
from arenite.planner.tensors import alignments
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class Work:
    """The steps of a program that are not views, numbered from 0, and the storages they touch.

    Attributes:
        program: The program, its views in the storage of their bases.
        numbers: Number in the program of each step.
        scratch: Bytes of working memory of each step.
        may_repeat: Whether each step may run again.
        closed_by: The first step after which each step may not run again, as a state that it
            reads has changed; the number of steps if there is none.
        names: Name of each storage.
        sizes: Bytes of each storage, aligned; 0 in other memories.
        makers: The step that makes each storage; -1 if the caller or the run before does.
        is_kept: Whether each storage is live to the end.
        is_given: Whether each storage is live from the start.
        may_leave: Whether each storage may be spilled or recomputed.
    """

    program: Program
    numbers: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    seconds: tuple[float, ...]
    scratch: tuple[int, ...]
    may_repeat: tuple[bool, ...]
    closed_by: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    makers: tuple[int, ...]
    is_kept: tuple[bool, ...]
    is_given: tuple[bool, ...]
    may_leave: tuple[bool, ...]
    costs: Costs

    @property
    def num_steps(self) -> int:
        """Number of steps that are not views."""
        return len(self.numbers)

    @classmethod
    def of(cls, program: Program, costs: Costs) -> Self:
        """Return a program as policies see it.

        Cost: O(tensors + operands of the steps).
        """
        program = with_views(program)
        storages = Reschedulable.of(program)
        views = set(storages.views.values())
        numbers = tuple(n for n in range(len(program.steps)) if n not in views)
        index: dict[str, int] = {}
        for name in program.tensors:
            root = program.root(name)[0]
            if program.tensors[root].kind is not TensorKind.CONSTANT:
                index.setdefault(root, len(index))
        uses = Uses.of(program)
        steps = [program.steps[number] for number in numbers]
        reads = tuple(tuple(index[name] for name in uses.reads[number]) for number in numbers)
        writes = tuple(tuple(index[name] for name in uses.writes[number]) for number in numbers)
        makers = [-1] * len(index)
        for number, written in enumerate(writes):
            for storage in written:
                makers[storage] = number
        tensors = [program.tensors[name] for name in index]
        aligned = alignments(program.memories, ALIGNMENT)
        workplace = program.memories[0].name
        with_states = program.state_storages
        is_state = [name in with_states for name in index]
        given, kept = set(uses.given), set(uses.kept)
        may_repeat = tuple(number in storages.repeatable for number in numbers)
        return cls(
            program,
            numbers,
            reads,
            writes,
            tuple(costs.seconds(program, step) for step in steps),
            tuple(
                align_up(step.operator.scratch(program.operands(step)), aligned[workplace])
                for step in steps
            ),
            may_repeat,
            _closed_by(reads, writes, is_state),
            tuple(index),
            tuple(
                align_up(tensor.size, aligned[workplace]) if tensor.memory == workplace else 0
                for tensor in tensors
            ),
            tuple(makers),
            tuple(name in kept for name in index),
            tuple(name in given for name in index),
            tuple(
                name not in storages.pinned and tensor.memory == workplace
                for name, tensor in zip(index, tensors, strict=True)
            ),
            costs,
        )


def _closed_by(
    reads: tuple[tuple[int, ...], ...], writes: tuple[tuple[int, ...], ...], is_state: list[bool]
) -> tuple[int, ...]:
    num_steps = len(reads)
    first_write: dict[int, int] = {}
    for number, written in enumerate(writes):
        for storage in written:
            if is_state[storage]:
                first_write.setdefault(storage, number)
    return tuple(
        min([num_steps, *(first_write[storage] for storage in read if storage in first_write)])
        for read in reads
    )
