"""Write a schedule back as a program."""

from collections import defaultdict
from dataclasses import replace

from arenite.planner.costs import Link
from arenite.planner.memory import Memory
from arenite.planner.names import Names
from arenite.planner.operators.moving import Fetch, Spill, Wait
from arenite.planner.operators.operator import Operator
from arenite.planner.program import Program, Step
from arenite.planner.rewrites.rescheduling.peak import with_views
from arenite.planner.rewrites.rescheduling.schedule import Move, Schedule
from arenite.planner.rewrites.rescheduling.storages import Storages
from arenite.planner.tensors import Alias, Tensor, TensorKind

SPILLED = "spilled"
"""Name of the memory that tensors are spilled to."""


def reschedule(program: Program, schedule: Schedule, link: Link | None = None) -> Program:
    """Return a program that runs as the schedule says and has the same outputs.

    A step that runs again gets a name of its own, and so does what it makes; later readers read
    that. Views are made again, just before their first reader, of each instance that has one.

    Args:
        program: The program that the schedule's slots and moves name.
        schedule: What runs when, and what moves.
        link: What carries the moves; its lanes are theirs.

    Raises:
        ValueError: The schedule repeats a step or moves a tensor that cannot be, or leaves out
            a step.
        ModelError: A step of the schedule reads what is not there.

    Cost: O(tensors + operands of all slots).
    """
    program = with_views(program)
    return _Rewrite(program, Storages.of(program), link).run(schedule)


class _Rewrite:
    def __init__(self, program: Program, storages: Storages, link: Link | None) -> None:
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
        events: dict[int, list[tuple[int, Move]]] = defaultdict(list)
        for move in schedule.moves:
            if move.leaves is not None:
                events[move.leaves].append((0, move))
                events[move.gone].append((1, move))
            events[move.returns].append((2, move))
            events[move.back].append((3, move))
        for place, number in enumerate(schedule.slots):
            # What frees bytes comes before what takes them.
            for kind, move in sorted(events.get(place, ()), key=lambda event: event[0]):
                (self._spill, self._forget, self._fetch, self._switch)[kind](move)
            self._execute(number)
        for name in self._program.output_tensors:
            self._see(name)
        return self._program_made(bool(schedule.moves))

    def _check(self, schedule: Schedule) -> None:
        views, pinned = set(self._storages.views.values()), self._storages.pinned
        missing = set(range(len(self._program.steps))) - views - set(schedule.slots)
        if missing:
            left_out = self._program.steps[min(missing)].name
            raise ValueError(f"the schedule leaves out step {left_out!r}")
        for move in schedule.moves:
            tensor = self._program.tensors[move.tensor]
            if move.tensor in pinned or tensor.kind is TensorKind.CONSTANT or tensor.alias:
                raise ValueError(f"{move.tensor!r} cannot be moved")

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
        """Return the present name of a tensor; make the view again if it is one."""
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
        """Return a new tensor that takes the place of one; nobody reads that of a pinned one."""
        made = self._add(self._tensors[name], None)
        if name not in self._storages.pinned:
            self._rename(name, made)
        return made

    def _rename(self, name: str, made: str) -> None:
        """Let what reads a tensor from now on read another, and views of it be made again."""
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

    def _spill(self, move: Move) -> None:
        source = self._current.get(move.tensor, move.tensor)
        copy = self._add(self._program.tensors[move.tensor], None, SPILLED)
        self._spilled[move.tensor] = copy
        self._append(f"spill {source}", Spill(move.moved), (source,), (copy,), self._lanes[0])

    def _forget(self, move: Move) -> None:
        source = self._current.get(move.tensor, move.tensor)
        self._append(f"wait for {source}", Wait(), (source, self._spilled[move.tensor]), ())

    def _fetch(self, move: Move) -> None:
        made = self._add(self._program.tensors[move.tensor], None)
        self._fetched[move.tensor] = made
        copy = self._spilled[move.tensor]
        self._append(f"fetch {made}", Fetch(move.moved), (copy,), (made,), self._lanes[1])

    def _switch(self, move: Move) -> None:
        made = self._fetched.pop(move.tensor)
        self._append(f"wait for {made}", Wait(), (self._spilled[move.tensor], made), ())
        self._rename(move.tensor, made)

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

    def _program_made(self, moves: bool) -> Program:
        used = {name for step in self._steps for name in (*step.reads, *step.writes)}
        used.update(self._program.input_tensors, self._program.output_tensors)
        for name in list(used):  # parts need what they lie in, though no step may touch it whole
            while (alias := self._tensors[name].alias) is not None:
                name = alias.tensor
                used.add(name)
        tensors = {
            name: tensor
            for name, tensor in self._tensors.items()
            if name in used or tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE)
        }
        memories = self._program.memories
        if moves and SPILLED not in {memory.name for memory in memories}:
            memories = (*memories, Memory(SPILLED))
        return replace(self._program, tensors=tensors, steps=tuple(self._steps), memories=memories)
