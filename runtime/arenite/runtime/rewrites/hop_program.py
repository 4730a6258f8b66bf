"""Write the program that runs on a stream: new rows behind those that a state keeps.

A tensor x of which rows are kept becomes three::

    x/rows    |ooooooooooooNNN|   the older rows and the new ones, which steps read
    x/state   |oooooooooooo|      the older rows, kept from run to run
    x/new                  |NNN|  the rows that a run makes, where they are read

In parts of a hop the older rows of some tensors lie behind their place, x/new lies elsewhere, and
a step puts all together in x/rows::

    x/state      |oooooooooooo|   between the parts
    x/rows    |ooooooooooooNNN|   once x/new is made, until it is read

The bytes below x/state are free for new rows of another tensor, which lie above its older ones.

The bytes of the new rows are free until they are made, and once the last step has read them: then
the newest rows move to the place of the older ones. As x/state lies below them at all times, no
other new rows can lie there. So where few rows are kept x/state lies elsewhere, and its rows are
copied to x/rows, of which all bytes are free again. Steps read rows of x/rows as views; one that
computes the whole window reads x, the last of them.

Rows at the borders of the window, which are made again at each run, lie in front of the older rows
and behind the new ones; their bytes are free between.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from arenite.planner import Alias, DType, Port, Program, Step, Tensor, TensorKind, liveness
from arenite.planner.programs import SAFE_KINDS, Names
from arenite.planner.rewrites import share
from arenite.runtime.operators.movement import Append, Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.fusing import without_unread
from arenite.runtime.rewrites.hop_decisions import decide
from arenite.runtime.rewrites.hop_parts import OnNewRows, WrittenHop, in_parts
from arenite.runtime.rewrites.hop_sums import with_sums
from arenite.runtime.rewrites.hops import (
    Decisions,
    HopPiece,
    Hops,
    NotStreamedError,
    WindowStep,
    is_cut,
    with_rows,
)


@dataclass(frozen=True, slots=True)
class Streamed:
    """A program that runs on a stream.

    Attributes:
        window: Rows of the window.
        whole: The first steps that compute the whole window, and why.
        warm_up: Runs after which no output depends on what the states started from.
        late: Rows of the input by which the latest output is late; 0 unless padding is the
            stream's.
        alters: Whether outputs are others than those of whole windows, as padding is the stream's.
    """

    program: Program
    hops: Hops
    window: int
    whole: tuple[WindowStep, ...]
    warm_up: int
    late: Fraction
    alters: bool

    @property
    def state_bytes(self) -> int:
        """Bytes of the rows that are kept."""
        tensors = self.program.tensors.values()
        return sum(each.size for each in tensors if each.kind is TensorKind.STATE)


def streamed(program: Program, hops: Hops) -> Streamed:
    """Return a program that runs on the new rows of an input and keeps the older ones it needs.

    Each run takes a hop. Outputs are those of the window that ends there; of an output with rows
    only the new ones are made. Other inputs are read at each run.

    Raises:
        NotStreamedError: The input or its axis does not exist or cannot be cut, the hop is not
            shorter than the window, the program has states, or every step that multiplies would
            compute the whole window.

    Cost: O(operands of the steps), for each ratio of rows kept to new ones.
    """
    if hops.parts != 1:
        return _of_parts(program, hops)
    found = decide(program, hops)
    (window,) = (
        port.shape(program.tensors[port.tensor].shape)[hops.axis]
        for port in program.inputs
        if port.name == hops.input
    )
    made = _of_fewest_bytes(program, found).program
    summing = with_sums(program, found)
    if len(summing.steps) > len(program.steps):
        other = _of_fewest_bytes(summing, decide(summing, hops)).program
        made = min(made, other, key=_least_bytes)
    if found.whole and 0 < program.multiply_adds <= made.multiply_adds:
        raise NotStreamedError(found.whole[0].name, found.whole[0].reason)
    return Streamed(made, hops, window, found.whole, found.reach, found.late, found.alters)


def _of_parts(program: Program, hops: Hops) -> Streamed:
    """Return a program that computes a hop in parts.

    Raises:
        NotStreamedError: As `streamed`; or the hop has no such parts.
    """
    if not 0 < hops.parts <= hops.rows or hops.rows % hops.parts:
        raise NotStreamedError(
            hops.input, f"cannot be computed in {hops.parts} parts of a hop of {hops.rows} rows"
        )
    whole = streamed(program, replace(hops, parts=1))
    own = replace(hops, rows=hops.rows // hops.parts, parts=1)
    made = [_repeated(program, hops, own)]
    summing = with_sums(program, decide(program, own))
    if len(summing.steps) > len(program.steps):
        made.append(_repeated(summing, hops, own))
    return replace(whole, program=min(made, key=_least_bytes), hops=hops)


def _repeated(program: Program, hops: Hops, own: Hops) -> Program:
    """Return the program of a hop that repeats that of a part.

    Raises:
        NotStreamedError: Steps run on the new rows of a hop, but not on those of a part.
    """
    of_hop, of_part = decide(program, hops), decide(program, own)
    for name, flow in (*of_hop.flows.items(), *of_part.flows.items()):
        if flow.front or flow.back or not flow.made:
            raise NotStreamedError(
                name, "has rows that depend on padding of the window, so the hop takes one part"
            )
    repeated, once = set[str](), set[str]()
    for step in program.steps:
        made = of_hop.steps.get(step.name)
        reads = {program.root(name)[0] for name in step.reads}
        if made is None or made.flow.made == made.flow.rows:  # all of the window
            if made is not None or not reads.isdisjoint(once | of_hop.flows.keys()):
                once.update(step.writes)
            continue
        repeated.add(step.name)
        if step.name not in of_part.steps:
            raise NotStreamedError(
                step.name, f"does not run on {own.rows} rows, a part of the hop"
            )
        if not reads.isdisjoint(once):
            raise NotStreamedError(
                step.name, "reads what is computed for the whole window, so the hop takes one part"
            )
    writer = _Writer(program, of_hop, {name for name, flow in of_hop.flows.items() if flow.kept})
    shared = writer.read_by_others(repeated) - once
    apart = {name for name in shared if not is_cut(program.tensors[name], of_hop.axes[name])}
    on_new_rows = OnNewRows({step.name for step in program.steps}, repeated, shared, apart)
    hop = writer.written()
    kept = [name for name, flow in of_part.flows.items() if flow.kept and name not in shared]
    found = [
        in_parts(_of_fewest_bytes(program, of_part, shared, ahead), hop, hops.parts, on_new_rows)
        for ahead in ((), kept[::2])
    ]
    return min(found, key=_least_bytes)


def _of_fewest_bytes(
    program: Program, found: Decisions, in_place: Collection[str] = (), ahead: Collection[str] = ()
) -> WrittenHop:
    """Return the program with rows kept in place where that takes fewer bytes: many rows do.

    Args:
        in_place: Tensors whose rows are kept there in any case.
        ahead: Tensors whose older rows make room for new ones before these are read.
    """
    ratios = {
        name: Fraction(flow.kept, flow.made) for name, flow in found.flows.items() if flow.kept
    }
    written = [
        _Writer(
            program,
            found,
            {name for name, each in ratios.items() if each >= least} | {*in_place},
            ahead,
        ).written()
        for least in sorted({*ratios.values(), max(ratios.values(), default=Fraction(0)) + 1})
    ]
    return min(written, key=lambda each: _least_bytes(each.program))


def _least_bytes(program: Program) -> tuple[int, int]:
    """Return the bytes that any arena of a program has, and those if nothing lies among new rows.

    Rows that are kept in place share no byte, but for the room below some and above others.
    """
    problem = liveness(share(program, SAFE_KINDS))
    in_place = program.state_storages
    kept = sum(each.size for each in problem.records if each.name in in_place)
    below, above = list[int](), list[int]()
    for name, tensor in program.tensors.items():
        root, offset = program.root(name)
        if tensor.kind is TensorKind.STATE and root != name:
            below.append(offset)
            above.append(program.tensors[root].size - offset - tensor.size)
    shared = zip(sorted(below, reverse=True), sorted(above, reverse=True), strict=True)
    kept -= sum(min(pair) for pair in shared)
    return max(problem.lower_bound, kept), problem.hulls().lower_bound


class _Writer:
    def __init__(
        self,
        program: Program,
        found: Decisions,
        in_place: Collection[str],
        ahead: Collection[str] = (),
    ) -> None:
        self._in_place = in_place
        self._ahead = ahead
        self._program = program
        self._found = found
        self._names = Names(program.tensors)
        self._step_names = Names(step.name for step in program.steps)
        self._tensors = dict(program.tensors)
        self._constants = dict(program.constants)
        self._initial = dict(program.initial)
        self._written = {name for step in program.steps for name in step.writes}
        self._new: dict[str, str] = {}
        """By tensor on the stream, that of its new rows."""
        self._rows: dict[str, str] = {}
        """By tensor on the stream, that of all rows that are there."""
        self._states: dict[str, Tensor] = {}
        """By tensor on the stream, that of its older rows."""
        self._pieces: dict[tuple[str, int, int], str] = {}

    def read_by_others(self, steps: Collection[str]) -> frozenset[str]:
        """Return the tensors on the stream that others than these steps write or read."""
        names = {*self._program.input_tensors, *self._program.output_tensors}
        for step in self._program.steps:
            if step.name not in steps:
                names.update(filter(None, step.inputs))
        return frozenset(map(self._root, names)) & self._found.flows.keys()

    def written(self) -> WrittenHop:
        """Return the program."""
        program, steps = self._program, list[Step]()
        for name in program.input_tensors:
            steps += self._begin(name)
        for step in program.steps:
            own = self._found.steps.get(step.name)
            if own is None:
                steps.append(step)
                continue
            first, *borders = own.pieces
            result, *others = step.outputs
            taking = self._begin(result)
            inputs, stores = self._carry(step, own.along.carried, self._taken(step, first))
            outputs = (self._result(result, first), *others)
            steps.append(replace(step, operator=first.operator, inputs=inputs, outputs=outputs))
            steps += (*stores, *taking)
            steps += (self._border(step, each) for each in borders)
        steps = self._with_states_kept(steps)
        made = without_unread(
            replace(
                program,
                tensors=self._tensors,
                steps=tuple(steps),
                inputs=tuple(self._port(port) for port in program.inputs),
                outputs=tuple(self._port(port) for port in program.outputs),
                constants=self._constants,
                initial=self._initial,
            )
        )
        return WrittenHop(made, self._new)

    def _taken(self, step: Step, piece: HopPiece) -> tuple[str, ...]:
        """Return the inputs of a step that makes some rows."""
        return tuple(
            name if rows is None else self._piece(name, *rows)
            for name, rows in zip(step.inputs, piece.taken, strict=True)
        )

    def _result(self, name: str, piece: HopPiece) -> str:
        """Return the tensor of the rows of a stream that a step makes."""
        flow = self._found.flows[name]
        is_new = flow.made > 0 and piece.rows == (flow.first_made, flow.end)
        return self._new[name] if is_new else self._piece(name, *piece.rows)

    def _border(self, step: Step, piece: HopPiece) -> Step:
        """Return the step that makes rows at a border of the window again."""
        result = self._result(step.outputs[0], piece)
        name = self._step_names.take(f"{step.name}/from {piece.rows[0]}")
        return Step(name, piece.operator, self._taken(step, piece), (result,))

    def _begin(self, name: str) -> list[Step]:
        """Make the tensors of rows of a stream, and return the step that takes the older ones."""
        flow = self._found.flows.get(name)
        if flow is None:
            return []
        tensor, axis = self._tensors[name], self._found.axes[name]
        row = _row_bytes(tensor, axis)
        new, steps = with_rows(tensor, axis, flow.made), list[Step]()
        if name in self._ahead:
            rows = with_rows(tensor, axis, flow.kept + flow.made)
            rows = self._add(replace(rows, kind=TensorKind.ACTIVATION, alias=None), f"{name}/rows")
            self._rows[name] = rows.name
            older = with_rows(tensor, axis, flow.kept)
            state = self._state(name, replace(older, alias=Alias(rows.name, flow.made * row)))
            self._new[name] = self._add(replace(new, alias=None), f"{name}/new").name
            step = self._step_names.take(f"{name}/append")
            return [Step(step, Append(), (state.name, self._new[name]), (rows.name,))]
        if flow.kept or flow.front or flow.back or not flow.made:
            rows = with_rows(tensor, axis, flow.stop - flow.first)
            rows = self._add(replace(rows, kind=TensorKind.ACTIVATION, alias=None), f"{name}/rows")
            self._rows[name] = rows.name
            new = replace(new, alias=Alias(rows.name, (flow.first_made - flow.first) * row))
        if flow.kept:
            front = (flow.first_made - flow.kept - flow.first) * row
            older = replace(with_rows(tensor, axis, flow.kept), alias=Alias(rows.name, front))
            state = self._state(
                name, older if name in self._in_place else replace(older, alias=None)
            )
            if name not in self._in_place:
                taken = self._add(replace(older, kind=TensorKind.ACTIVATION), f"{name}/older")
                steps.append(self._copy(f"{name}/take", state.name, taken))
            self._states[name] = state
        if flow.made:
            self._new[name] = self._add(new, f"{name}/new").name
            self._rows.setdefault(name, self._new[name])
        window = flow.stop - flow.rows
        if window >= flow.first:  # for steps that compute all of it
            offset = (window - flow.first) * row
            self._tensors[name] = replace(
                tensor, kind=TensorKind.ACTIVATION, alias=Alias(self._rows[name], offset)
            )
        return steps

    def _with_states_kept(self, steps: Sequence[Step]) -> list[Step]:
        """Return steps with those among them that keep rows, behind the last that reads them."""
        last: dict[str, int] = {}
        for number, step in enumerate(steps):
            last.update((self._storage(each), number) for each in (*step.reads, *step.writes))
        keeping: dict[int, list[Step]] = {}
        for name, state in self._states.items():
            number = last.get(self._rows[name], -1)
            keeping.setdefault(number, []).append(self._keep(name, state))
        found = keeping.pop(-1, [])
        for number, step in enumerate(steps):
            found += (step, *keeping.get(number, ()))
        return found

    def _keep(self, name: str, state: Tensor) -> Step:
        """Return the step that keeps the newest rows of a stream."""
        new = self._tensors[self._new[name]]
        if state.alias is None:
            flow = self._found.flows[name]
            rows = flow.first_made - flow.kept + flow.made - flow.first
            row = new.num_elements // flow.made
            return self._store(name, self._rows[name], state, rows * row)
        if new.num_elements > state.num_elements:
            return self._store(name, new.name, state, new.num_elements - state.num_elements)
        step_name = self._step_names.take(f"{name}/append")
        return Step(step_name, Append(), (state.name, new.name), (state.name,))

    def _storage(self, name: str) -> str:
        while alias := self._tensors[name].alias:
            name = alias.tensor
        return name

    def _state(self, name: str, shaped: Tensor) -> Tensor:
        """Add a state that starts as zeros."""
        state = self._add(replace(shaped, kind=TensorKind.STATE), f"{name}/state")
        stated = state.quantisation
        zero = 0 if stated is None else stated.zero_point
        if zero or (stated is not None and state.dtype is DType.UINT8):  # C stores it less 128
            kind = TensorKind.CONSTANT
            initial = self._add(replace(state, kind=kind, alias=None), f"{state.name}/initial")
            array = np.full(state.shape, zero, np.dtype(state.dtype.label))
            self._constants[initial.name] = array
            self._initial[state.name] = initial.name
        return state

    def _store(self, name: str, source: str, state: Tensor, start: int = 0) -> Step:
        """Return the step that copies elements of a tensor, from one on, to a state."""
        return self._copy(f"{name}/store", source, state, start)

    def _copy(self, step: str, source: str, target: Tensor, start: int = 0) -> Step:
        """Return a step that copies elements of a tensor, from one on, to another."""
        shape = (target.num_elements,)
        move = Move(shape=shape, input_start=start, input_strides=(1,), output_strides=(1,))
        name = self._step_names.take(step)
        return Step(name, Copy(moves=(move,)), (source,), (target.name,))

    def _carry(
        self, step: Step, carried: Sequence[tuple[int, int]], inputs: tuple[str, ...]
    ) -> tuple[tuple[str, ...], list[Step]]:
        """Return inputs with states among them, and the steps that keep them for the next run."""
        found = list(inputs)
        stores: list[Step] = []
        for position, output in carried:
            made = self._program.tensors[step.outputs[output]]
            state = self._add(
                replace(made, kind=TensorKind.STATE, alias=None), f"{made.name}/state"
            )
            found += [""] * (position + 1 - len(found))
            if found[position]:
                self._initial[state.name] = found[position]
            found[position] = state.name
            stores.append(self._store(made.name, made.name, state))
        return tuple(found), stores

    def _piece(self, name: str, start: int, stop: int) -> str:
        """Return a tensor that holds some rows of one, or of a view of one, that is a stream."""
        root = self._root(name)
        flow = self._found.flows[root]
        tensor, axis = self._program.tensors[name], self._found.axes[name]
        whole = self._tensors[self._rows[root]]
        if name == root and (start, stop) == (flow.first, flow.stop):
            return whole.name
        if (name, start, stop) not in self._pieces:
            offset = (start - flow.first) * _row_bytes(tensor, axis)
            piece = replace(
                with_rows(tensor, axis, stop - start),
                kind=TensorKind.ACTIVATION,
                alias=Alias(whole.name, offset),
            )
            self._pieces[name, start, stop] = self._add(piece, f"{name}/piece").name
        return self._pieces[name, start, stop]

    def _root(self, name: str) -> str:
        while (alias := self._program.tensors[name].alias) and name not in self._written:
            name = alias.tensor
        return name

    def _port(self, port: Port) -> Port:
        """Return a port of the new rows, the port itself if its tensor is no stream."""
        root = self._root(port.tensor)
        flow = self._found.flows.get(root)
        if flow is None:
            return port
        if root == port.tensor and flow.newest == (flow.first_made, flow.end):
            return replace(port, tensor=self._new[root])
        piece = self._tensors[self._piece(port.tensor, *flow.newest)]
        self._tensors[piece.name] = replace(piece, kind=self._program.tensors[port.tensor].kind)
        return replace(port, tensor=piece.name)

    def _add(self, tensor: Tensor, wanted: str) -> Tensor:
        added = replace(tensor, name=self._names.take(wanted))
        self._tensors[added.name] = added
        return added


def _row_bytes(tensor: Tensor, axis: int) -> int:
    return math.prod(tensor.shape[axis + 1 :]) * tensor.dtype.bits // 8
