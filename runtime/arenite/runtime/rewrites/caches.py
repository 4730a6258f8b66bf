"""Make states of caches: the keys and values of the tokens so far, which a run adds to.

A model takes `past`, of P rows, and returns `present`, of P + S rows, which begins with them.
Stored row after row both begin at the same place of one state that has room for all rows, and the
step that joined them only writes the new rows behind the old ones::

    past --+
           Copy --> present           becomes           new --> Copy --> rows P to P + S of a state
    new ---+

Who reads `present` reads the first P + S rows of the state: a run copies none of the old ones.
"""

import math
from dataclasses import replace

from arenite.planner import Program, Step, TensorKind
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.programs import Names, Port
from arenite.planner.sizes import Dimension, Expression, depends, same, same_lengths
from arenite.planner.tensors import Alias
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move


def grow_states(program: Program) -> Program:
    """Return a lowered program whose caches are states, and no longer inputs and outputs.

    Raises:
        UnsupportedModelError: An output does not begin with the rows of the input that it
            continues, or has more than one length that depends on sizes.

    Cost: O(operands of the steps).
    """
    if not program.caches:
        return program
    growing = {each.name: each for each in program.dimensions if each.grows}
    inputs = {port.name: port for port in program.inputs}
    outputs = {port.name: port for port in program.outputs}
    names = Names(program.tensors)
    for past, present in program.caches.items():
        cache = _Cache(program, inputs[past], outputs[present], growing)
        program = cache.stored(names)
        before = growing[cache.dimension.name]
        if before.growth and not same(before.growth, cache.num_new):
            raise _refused(past, f"{before.name!r} grows by another number elsewhere")
        growing[before.name] = replace(before, growth=cache.num_new)
    dimensions = tuple(growing.get(each.name, each) for each in program.dimensions)
    return replace(program, dimensions=dimensions, caches={})


class _Cache:
    """A cache of a program, and the step that adds to it.

    Attributes:
        dimension: What counts its rows.
        num_new: The rows that a run adds.
    """

    def __init__(
        self, program: Program, past: Port, present: Port, growing: dict[str, Dimension]
    ) -> None:
        self._program = program
        self._name = past.name
        self._past, self._present = program.tensors[past.tensor], program.tensors[present.tensor]
        name = min(growing.keys() & Expression.of(self._past.shape[0]).names, default="")
        if not name or Expression.of(self._past.shape[0]) != Expression.of(growing[name].size):
            raise _refused(self._name, "its rows are not counted by the growing dimension alone")
        self.dimension = growing[name]
        makers = [step for step in program.steps if present.tensor in step.outputs]
        if len(makers) != 1 or len(makers[0].outputs) != 1:
            raise _refused(self._name, f"output {present.name!r} is not made by one step")
        self._step = makers[0]
        shape = self._present.shape
        axis = next((n for n, each in enumerate(shape) if depends(each)), len(shape))
        others = shape[axis + 1 :]
        if math.prod(shape[:axis]) != 1 or any(map(depends, (*others, *self._past.shape[1:]))):
            raise _refused(self._name, "supported: one length that depends on sizes")
        if not same_lengths(_long(others), _long(self._past.shape[1:])):
            raise _refused(self._name, f"output {present.name!r} has rows of another shape")
        self._axis = axis
        self.num_new = shape[axis] - self._past.shape[0]
        self._moves, self._sources = self._new_rows()

    def _new_rows(self) -> tuple[tuple[Move, ...], tuple[str, ...]]:
        """Return the moves of the step that do not bring the old rows, and what they read."""
        operator, past = self._step.operator, self._past
        if isinstance(operator, Copy) and past.name in self._step.inputs:
            old = [m for m in operator.moves if self._step.inputs[m.input] == past.name]
            if len(old) == 1 and old[0].is_whole(past.num_elements):
                sources = [name for name in self._step.inputs if name != past.name]
                moves = tuple(
                    replace(
                        move,
                        input=sources.index(self._step.inputs[move.input]),
                        output_start=move.output_start - past.num_elements,
                    )
                    for move in operator.moves
                    if move is not old[0]
                )
                if moves and not operator.fill:
                    return moves, tuple(sources)
        raise _refused(
            self._name, f"step {self._step.name!r} does not add rows behind those that there are"
        )

    def stored(self, names: Names) -> Program:
        """Return the program with a state in the place of the input and the output."""
        program, past, present = self._program, self._past, self._present
        highest = int(present.shape[self._axis])
        stored = replace(
            present, name=past.name, shape=(highest, *past.shape[1:]), kind=TensorKind.STATE
        )
        row = math.prod(past.shape[1:])
        rows = replace(
            present,
            name=names.take(f"{present.name}/new"),
            shape=(*present.shape[: self._axis], self.num_new, *present.shape[self._axis + 1 :]),
            kind=TensorKind.ACTIVATION,
            alias=Alias(stored.name, past.shape[0] * present.dtype.num_bytes(row)),
        )
        step = replace(
            self._step,
            operator=Copy(moves=self._moves),
            inputs=self._sources,
            outputs=(rows.name,),
        )
        steps = tuple(step if each is self._step else each for each in program.steps)
        views = [replace(present, kind=TensorKind.ACTIVATION, alias=Alias(stored.name)), rows]
        if any(past.name in each.reads for each in steps):
            name = names.take(f"{past.name}/past")
            views.append(
                replace(past, name=name, kind=TensorKind.ACTIVATION, alias=Alias(past.name))
            )
            steps = tuple(_renamed(each, past.name, name) for each in steps)
        changed = {each.name: each for each in (stored, *views)}
        return replace(
            program,
            tensors={**program.tensors, **changed},
            steps=steps,
            inputs=tuple(p for p in program.inputs if p.name != self._name),
            outputs=tuple(p for p in program.outputs if p.name != program.caches[self._name]),
            rows={**program.rows, stored.name: self.dimension.name},
        )


def _renamed(step: Step, old: str, new: str) -> Step:
    return replace(step, inputs=tuple(new if name == old else name for name in step.inputs))


def _long(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if not same(length, 1))


def _refused(name: str, reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        name, f"cannot be a state that grows: {reason}; leave out the + of its range"
    )
