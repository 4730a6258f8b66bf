"""Run a hop in parts: of fewer rows each, one after another.

The steps that run on new rows are repeated for each part, their states kept from part to part.
Tensors have the rows of a part, so that the arena is smaller, while each row is still made once::

    hop       |NNN|            one run, 3 rows
    parts     |N| |N| |N|      one run, 3 times 1 row

Rows of the input, of outputs and of tensors of which a step reads the whole window are those of
the hop: each part takes or makes its own among them, and they are kept once, behind the last part.
Steps that compute the whole window run behind the parts, too.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arenite.planner import Alias, Program, Step, Tensor, TensorKind
from arenite.planner.programs import Names
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move


@dataclass(frozen=True, slots=True)
class WrittenHop:
    """A program that runs on the new rows of a stream.

    Attributes:
        new: By tensor on the stream, that of its new rows.
    """

    program: Program
    new: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OnNewRows:
    """What parts share, and what each makes.

    Attributes:
        model: Names of all steps of the model.
        steps: Names of those that run on new rows.
        shared: Tensors of which the rows of a hop are there: the input, outputs, and those that
            are read for the whole window.
        apart: Those among them whose rows lie apart in memory, so that they are copied.
    """

    model: Collection[str]
    steps: Collection[str]
    shared: Collection[str]
    apart: Collection[str]


def in_parts(part: WrittenHop, hop: WrittenHop, parts: int, on_new_rows: OnNewRows) -> Program:
    """Return a program that makes what that of a hop makes, part by part.

    Args:
        part: Runs on the rows of a part.
        hop: Runs on those of a hop. Both keep the rows of shared tensors where they are read.
        parts: How many parts the hop has.
        on_new_rows: What they have in common.
    """
    return _Repeater(part, hop, parts, on_new_rows).program()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the rows of a part lie in the storage of those of a hop.

    Attributes:
        root: That storage.
        first: How many bytes further up than in the storage of the first part's own.
        part: Bytes of the rows of a part.
    """

    root: str
    first: int
    part: int


class _Repeater:
    def __init__(
        self, part: WrittenHop, hop: WrittenHop, parts: int, on_new_rows: OnNewRows
    ) -> None:
        self._part, self._hop, self._parts = part.program, hop.program, parts
        both = (part.program, hop.program)
        self._names = Names(name for each in both for name in each.tensors)
        self._step_names = Names({step.name: None for each in both for step in each.steps})
        self._repeated, self._model = on_new_rows.steps, on_new_rows.model
        self._copied = {part.new[name]: hop.new[name] for name in on_new_rows.apart}
        self._places: dict[str, _Place] = {}
        """By the storage of a shared tensor in the program of a part."""
        for name in on_new_rows.shared:
            if name not in on_new_rows.apart:
                (root, offset), (hop_root, hop_offset) = (
                    each.program.root(each.new[name]) for each in (part, hop)
                )
                size = part.program.tensors[part.new[name]].size
                self._places[root] = _Place(hop_root, hop_offset - offset, size)
        self._shared = {place.root for place in self._places.values()}
        """Storages of the rows of a hop."""
        self._made = {
            part.program.root(name)[0]
            for step in part.program.steps
            if step.name in self._repeated
            for name in step.writes
        }
        """Storages of what each part makes."""
        self._states = (
            part.program.state_storages
            & {
                part.program.root(name)[0]
                for step in part.program.steps
                if self._is_repeated(step)
                for name in (*step.reads, *step.writes)
            }
            - self._places.keys()
        )
        """Storages whose rows are kept from part to part."""
        self._given = {
            name
            for name in hop.program.input_tensors
            if hop.program.root(name)[0] not in {*self._shared, *self._copied.values()}
        }
        """Tensors that all parts read."""
        self._tensors: dict[str, Tensor] = {}
        self._own: dict[str, str] = {}
        """By tensor of the program of a part, that of the part which is written."""

    def program(self) -> Program:
        """Return the program."""
        before, behind, keeping = self._once()
        self._given.update(name for step in before for name in step.writes)
        steps, made = [*before], dict[str, list[str]]()
        for index in range(self._parts):
            self._own = {}
            for name, whole in self._copied.items():
                made.setdefault(name, []).append(self._name(name, index))
                if whole in self._hop.input_tensors:
                    steps.append(self._taken(name, whole, index))
            steps += (
                self._of_part(step, index) for step in self._part.steps if self._is_repeated(step)
            )
        for name, whole in self._copied.items():
            if whole not in self._hop.input_tensors:
                steps.append(self._together(made[name], whole))
        steps += behind
        steps = self._kept_at_once(steps, keeping)
        initial = {
            state: each.initial[state]
            for each in (self._part, self._hop)
            for state in each.initial
            if self._program_of(state) is each
        }
        tensors = self._needed(steps, initial)
        constants = {
            name: self._program_of(name).constants[name]
            for name, tensor in tensors.items()
            if tensor.kind is TensorKind.CONSTANT
        }
        return replace(
            self._hop, tensors=tensors, steps=tuple(steps), constants=constants, initial=initial
        )

    def _once(self) -> tuple[list[Step], list[Step], list[Step]]:
        """Return the steps that run once: before the parts, behind them, and those that keep rows.

        The first do not depend on the stream.
        """
        hop, before, behind, keeping = self._hop, list[Step](), list[Step](), list[Step]()
        on_stream = {*self._shared, *self._copied.values()}
        for step in hop.steps:
            reads, writes = (
                {hop.root(each)[0] for each in of} for of in (step.reads, step.writes)
            )
            if step.name not in self._model:
                if not writes.isdisjoint(self._shared):  # others are kept by each part
                    keeping.append(step)
            elif step.name not in self._repeated:
                is_behind = not reads.isdisjoint(on_stream)
                (behind if is_behind else before).append(step)
                on_stream.update(writes if is_behind else ())
        return before, behind, keeping

    def _kept_at_once(self, steps: Iterable[Step], keeping: Sequence[Step]) -> list[Step]:
        """Return steps with those that keep rows among them, behind the last reader of these."""
        found = [*steps]
        for step in keeping:
            storage = self._hop.root(step.outputs[0])[0]
            last = max(
                (
                    number
                    for number, each in enumerate(found)
                    if storage in {self._storage(name) for name in (*each.reads, *each.writes)}
                ),
                default=-1,
            )
            found.insert(last + 1, step)
        return found

    def _storage(self, name: str) -> str:
        """Return the storage of a tensor of the program."""
        own = self._tensors.get(name)
        if own is None:
            return self._program_of(name).root(name)[0]
        return name if own.alias is None else self._storage(own.alias.tensor)

    def _is_repeated(self, step: Step) -> bool:
        """Tell whether a step of a part is one of each part: it makes new rows or keeps these."""
        if step.name in self._model:
            return step.name in self._repeated
        roots = {self._part.root(name)[0] for name in (*step.reads, *step.writes)}
        return not roots.isdisjoint(self._made) and roots.isdisjoint(self._places)

    def _program_of(self, name: str) -> Program:
        """Return the program whose tensor of that name is meant."""
        part, hop = self._part, self._hop
        if name in part.tensors and part.root(name)[0] in self._states:
            return part
        return hop if name in hop.tensors else part

    def _needed(self, steps: Iterable[Step], initial: Mapping[str, str]) -> dict[str, Tensor]:
        """Return the tensors of a program."""
        hop, part = self._hop, self._part
        pending = [name for step in steps for name in (*step.reads, *step.writes)]
        pending += (*hop.input_tensors, *hop.output_tensors, *initial.values())
        for each, storages in ((part, self._states), (hop, self._shared)):
            pending += (
                name
                for name, tensor in each.tensors.items()
                if tensor.kind is TensorKind.STATE and each.root(name)[0] in storages
            )
        found: dict[str, Tensor] = {}
        while pending:
            name = pending.pop()
            if name not in found:
                found[name] = self._tensors.get(name) or self._program_of(name).tensors[name]
                if (alias := found[name].alias) is not None:
                    pending.append(alias.tensor)
        return found

    def _name(self, name: str, index: int) -> str:
        """Return the tensor of a part that a tensor of its program becomes, and add it."""
        part = self._part
        tensor, (root, offset) = part.tensors[name], part.root(name)
        if tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE) or name in self._given:
            return name
        if name not in self._own:
            alias = tensor.alias
            if (place := self._places.get(root)) is not None:
                alias = Alias(place.root, offset + place.first + index * place.part)
            elif root in self._states:
                alias = Alias(root, offset)
            elif alias is not None:
                alias = replace(alias, tensor=self._name(alias.tensor, index))
            own = self._names.take(f"{name}/{index}")
            kind = TensorKind.ACTIVATION
            self._tensors[own] = replace(tensor, name=own, kind=kind, alias=alias)
            self._own[name] = own
        return self._own[name]

    def _of_part(self, step: Step, index: int) -> Step:
        inputs, outputs = (
            tuple(self._name(name, index) if name else "" for name in names)
            for names in (step.inputs, step.outputs)
        )
        name = self._step_names.take(f"{step.name}/part {index}")
        return replace(step, name=name, inputs=inputs, outputs=outputs)

    def _taken(self, name: str, whole: str, index: int) -> Step:
        """Return the step that takes the rows of a part from an input."""
        blocks, rows = self._blocks(name, whole)
        move = Move(
            shape=(blocks, rows), input_start=index * rows,
            input_strides=(self._parts * rows, 1), output_strides=(rows, 1),
        )  # fmt: skip
        step = self._step_names.take(f"{name}/part {index}")
        return Step(step, Copy(moves=(move,)), (whole,), (self._name(name, index),))

    def _together(self, made: Sequence[str], whole: str) -> Step:
        """Return the step that joins the rows of all parts of an output."""
        blocks, rows = self._blocks(made[0], whole)
        moves = tuple(
            Move(
                input=index, shape=(blocks, rows), input_strides=(rows, 1),
                output_start=index * rows, output_strides=(self._parts * rows, 1),
            )
            for index in range(self._parts)
        )  # fmt: skip
        step = self._step_names.take(f"{whole}/join")
        return Step(step, Copy(moves=moves), tuple(made), (whole,))

    def _blocks(self, name: str, whole: str) -> tuple[int, int]:
        """Return how many blocks of rows a tensor of a part has, and the elements of each."""
        part = self._tensors.get(name) or self._part.tensors[name]
        axes = zip(part.shape, self._hop.tensors[whole].shape, strict=True)
        axis = next(index for index, (one, other) in enumerate(axes) if one != other)
        return math.prod(part.shape[:axis]), math.prod(part.shape[axis:])
