"""Run steps again, and spill tensors to another memory and back, as a schedule says.

The result is an ordinary program. A step that runs again is a second step with tensors of its
own, and a transfer is a step on the lane of a link, so no later stage knows of this rewrite.

Bytes are counted before derivation shares storage: views share, inputs and outputs of the program
lie in the arena, nothing else shares. A step that runs again needs its operands whole; derivation
shares more later, which only helps.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Self

from arenite.planner.operators.moving import Fetch, Spill, Wait
from arenite.planner.operators.operator import Operator
from arenite.planner.placement.problem import Problem
from arenite.planner.programs.costs import Link
from arenite.planner.programs.program import COMPUTE, Names, Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, AliasKind
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.tensors import SPILLED, Alias, Memory, Tensor, TensorKind

ALIGNMENT = DEFAULT_ALIGNMENT
"""Bytes that every size is a multiple of."""


def with_views(program: Program) -> Program:
    """Return the program with its views in the storage of their bases."""
    return share(program, (AliasKind.VIEWS,))


def problem_of(program: Program) -> Problem:
    """Return the records of a program whose views share storage."""
    return liveness(with_views(program), alignment=ALIGNMENT)


def peak_of(program: Program) -> int:
    """Return the most bytes live at once in the memory that steps compute in.

    That is the lower bound of every plan of the program, in its order.
    """
    return problem_of(program).lower_bounds[0]


@dataclass(frozen=True, slots=True)
class SpillSpan:
    """The time for which a tensor is spilled to another memory, by slots of a schedule.

    Attributes:
        tensor: Name of the tensor that owns the storage.
        leaves: The copy out starts before this slot; None if an earlier spill left a copy.
        gone: The copy out is waited for before this slot; the bytes are free from then on.
        returns: The copy back starts before this slot, and takes bytes from then on.
        back: The copy back is waited for before this slot, the next that reads the tensor.
        moved: Bytes that are expected to cross the link each way; None for all.
    """

    tensor: str
    leaves: int | None
    gone: int
    returns: int
    back: int
    moved: int | None = None

    def __post_init__(self) -> None:
        leaves = self.gone if self.leaves is None else self.leaves
        if not 0 <= leaves <= self.gone <= self.returns <= self.back:
            raise ValueError(f"{self}: leaves, gone, returns and back must not decrease")


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of steps with repetitions, and the spills.

    A step reads the latest instance of each tensor. An instance is live up to its last reader
    before the next; when it dies is never written down.

    Attributes:
        slots: Indices of the program's steps; steps that are views are left out, they come
            along with the tensors they view.
        spills: Spills in any order; those of one tensor do not overlap.
    """

    slots: tuple[int, ...]
    spills: tuple[SpillSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Reschedulable:
    """Steps that may run again, and storages that may be recomputed or spilled.

    Attributes:
        views: Number of the step that makes each view; a lowered one has no step.
        pinned: Storages with a single instance: outputs, states, storages that another lane
            touches, and those that several tensors or steps write.
        repeatable: Numbers of the steps that may run again.
    """

    views: dict[str, int]
    pinned: frozenset[str]
    repeatable: frozenset[int]

    @classmethod
    def of(cls, program: Program) -> Self:
        """Return them for a program whose views share storage.

        Cost: O(tensors + operands of the steps).
        """
        views: dict[str, int] = {}
        writers: Counter[str] = Counter(program.root(name)[0] for name in program.input_tensors)
        pinned = {program.root(name)[0] for name in program.output_tensors}
        for number, step in enumerate(program.steps):
            operands = program.operands(step)
            aliased = all(program.tensors[name].alias is not None for name in step.writes)
            same = step.operator.is_view(operands) or step.operator.changes_nothing(operands)
            if step.lane == COMPUTE and aliased and same:
                views.update(dict.fromkeys(step.writes, number))
                continue
            writers.update({program.root(name)[0] for name in step.writes})
            if step.lane != COMPUTE:
                pinned.update(program.root(name)[0] for name in (*step.reads, *step.writes))
        writes = {name for step in program.steps for name in step.writes}
        pinned.update(name for name, count in writers.items() if count > 1)
        for tensor in program.tensors.values():
            root = program.root(tensor.name)[0]
            is_part = tensor.name in writes and root != tensor.name and tensor.name not in views
            if tensor.kind is TensorKind.STATE or is_part:
                pinned.add(root)
        again = frozenset(
            number
            for number, step in enumerate(program.steps)
            if step.operator.repeatable and step.lane == COMPUTE and not step.operator.updates
        )
        return cls(views, frozenset(pinned), again)


def reschedule(program: Program, schedule: Schedule, link: Link | None = None) -> Program:
    """Return a program that runs as the schedule says and has the same outputs.

    A step that runs again gets a name of its own, and so do its results; later readers read them.
    Views are recomputed, just before their first reader, of each instance that has one.

    Args:
        program: The program that the schedule's slots and spills name.
        link: The link of the spills; they run on its lanes.

    Raises:
        ValueError: The schedule repeats a step or spills a tensor that cannot be, or leaves out
            a step.
        ModelError: A step of the schedule reads a tensor before it is made.

    Cost: O(tensors + operands of all slots).
    """
    program = with_views(program)
    return _Rescheduling(program, Reschedulable.of(program), link).run(schedule)


class _Rescheduling:
    def __init__(self, program: Program, storages: Reschedulable, link: Link | None) -> None:
        self._program = program
        self._storages = storages
        self._lanes = ("link out", "link back") if link is None else link.lanes
        self._tensor_names = Names(program.tensors)
        self._step_names = Names(step.name for step in program.steps)
        self._tensors = dict(program.tensors)
        self._steps: list[Step] = []
        self._current: dict[str, str] = {}  # the present name of tensors that have several
        self._viewed: dict[str, str] = {}  # and of the views of their present instance
        self._spilled: dict[str, str] = {}  # where their copies lie in the other memory
        self._fetched: dict[str, str] = {}
        self._has_run: set[int] = set()

    def run(self, schedule: Schedule) -> Program:
        self._check(schedule)
        events: dict[int, list[tuple[int, SpillSpan]]] = defaultdict(list)
        for span in schedule.spills:
            if span.leaves is not None:
                events[span.leaves].append((0, span))
                events[span.gone].append((1, span))
            events[span.returns].append((2, span))
            events[span.back].append((3, span))
        for place, number in enumerate(schedule.slots):
            # Events that free bytes come before those that take them.
            for kind, span in sorted(events.get(place, ()), key=lambda event: event[0]):
                (self._spill, self._forget, self._fetch, self._switch)[kind](span)
            self._execute(number)
        for name in self._program.output_tensors:
            self._see(name)
        return self._program_made(bool(schedule.spills))

    def _check(self, schedule: Schedule) -> None:
        views, pinned = set(self._storages.views.values()), self._storages.pinned
        missing = set(range(len(self._program.steps))) - views - set(schedule.slots)
        if missing:
            left_out = self._program.steps[min(missing)].name
            raise ValueError(f"the schedule leaves out step {left_out!r}")
        for span in schedule.spills:
            tensor = self._program.tensors[span.tensor]
            if span.tensor in pinned or tensor.kind is TensorKind.CONSTANT or tensor.alias:
                raise ValueError(f"{span.tensor!r} cannot be spilled")

    def _execute(self, number: int) -> None:
        step = self._program.steps[number]
        inputs = tuple(name and self._see(name) for name in step.inputs)
        if number not in self._has_run:
            self._has_run.add(number)
            self._steps.append(replace(step, inputs=inputs))
            return
        if number not in self._storages.repeatable:
            raise ValueError(f"step {step.name!r} cannot run again")
        outputs = tuple(name and self._instance(name) for name in step.outputs)
        name = self._step_names.take(step.name)
        self._steps.append(replace(step, name=name, inputs=inputs, outputs=outputs))

    def _see(self, name: str) -> str:
        """Return the present name of a tensor; repeat the view if it is one."""
        number = self._storages.views.get(name)
        if number is None:
            return self._see_lowered(name)
        if name not in self._viewed:
            step = self._program.steps[number]
            source = self._see(step.inputs[0])
            inputs = (source, *(each and self._see(each) for each in step.inputs[1:]))
            first = number not in self._has_run
            self._has_run.add(number)
            outputs = step.outputs
            if first:
                for each in step.writes:
                    self._tensors[each] = replace(self._tensors[each], alias=Alias(source))
            else:
                outputs = tuple(
                    each and self._add(self._tensors[each], Alias(source)) for each in outputs
                )
            self._viewed.update(
                (old, new) for old, new in zip(step.outputs, outputs, strict=True) if old
            )
            own_name = step.name if first else self._step_names.take(step.name)
            self._steps.append(replace(step, name=own_name, inputs=inputs, outputs=outputs))
        return self._viewed[name]

    def _see_lowered(self, name: str) -> str:
        """Return the present name of a tensor that is no step's view, but may lie in another."""
        alias = self._program.tensors[name].alias
        if alias is None or name in self._current:
            return self._current.get(name, name)
        source = self._see(alias.tensor)
        if source == alias.tensor:
            return name
        if name not in self._viewed:
            self._viewed[name] = self._add(self._tensors[name], Alias(source, alias.offset))
        return self._viewed[name]

    def _instance(self, name: str) -> str:
        """Return a new tensor in place of one; no step reads that of a pinned tensor."""
        made = self._add(self._tensors[name], None)
        if name not in self._storages.pinned:
            self._rename(name, made)
        return made

    def _rename(self, name: str, made: str) -> None:
        """Replace a tensor by another for later readers; views of it are recomputed."""
        self._current[name] = made
        for view in [each for each in self._viewed if self._program.root(each)[0] == name]:
            del self._viewed[view]

    def _add(self, tensor: Tensor, alias: Alias | None, memory: str | None = None) -> str:
        name = self._tensor_names.take(tensor.name)
        kind = tensor.kind if alias is not None else TensorKind.ACTIVATION
        self._tensors[name] = replace(
            tensor, name=name, kind=kind, alias=alias, memory=memory or tensor.memory
        )
        return name

    def _spill(self, span: SpillSpan) -> None:
        source = self._current.get(span.tensor, span.tensor)
        copy = self._add(self._program.tensors[span.tensor], None, SPILLED)
        self._spilled[span.tensor] = copy
        self._append(f"spill {source}", Spill(span.moved), (source,), (copy,), self._lanes[0])

    def _forget(self, span: SpillSpan) -> None:
        source = self._current.get(span.tensor, span.tensor)
        self._append(f"wait for {source}", Wait(), (source, self._spilled[span.tensor]), ())

    def _fetch(self, span: SpillSpan) -> None:
        made = self._add(self._program.tensors[span.tensor], None)
        self._fetched[span.tensor] = made
        copy = self._spilled[span.tensor]
        self._append(f"fetch {made}", Fetch(span.moved), (copy,), (made,), self._lanes[1])

    def _switch(self, span: SpillSpan) -> None:
        made = self._fetched.pop(span.tensor)
        self._append(f"wait for {made}", Wait(), (self._spilled[span.tensor], made), ())
        self._rename(span.tensor, made)

    def _append(
        self,
        name: str,
        operator: Operator,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        lane: str | None = None,
    ) -> None:
        step = Step(self._step_names.take(name), operator, inputs, outputs)
        self._steps.append(step if lane is None else replace(step, lane=lane))

    def _program_made(self, spills: bool) -> Program:
        used = {name for step in self._steps for name in (*step.reads, *step.writes)}
        used.update(self._program.input_tensors, self._program.output_tensors)
        for name in list(used):  # parts need their whole, though no step may touch all of it
            while (alias := self._tensors[name].alias) is not None:
                name = alias.tensor
                used.add(name)
        tensors = {
            name: tensor
            for name, tensor in self._tensors.items()
            if name in used or tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE)
        }
        memories = self._program.memories
        if spills and SPILLED not in {memory.name for memory in memories}:
            memories = (*memories, Memory(SPILLED))
        return replace(self._program, tensors=tensors, steps=tuple(self._steps), memories=memories)
