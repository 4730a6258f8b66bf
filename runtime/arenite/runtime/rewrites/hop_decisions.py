"""Decide which steps of a program run on the new rows of a stream.

Axes are found first, step by step; then backwards which rows of the window outputs depend on; then
for each step the rows of its result that a run makes, and those of its operands that it reads.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from arenite.planner import Port, Program, Step, Tensor
from arenite.planner.operators import Along, Operands, Operator, Region, whole
from arenite.planner.tensors import TensorKind
from arenite.runtime.rewrites.hops import (
    Decisions,
    Flow,
    Hops,
    HopStep,
    NotStreamedError,
    Padding,
    WindowStep,
    is_cut,
    with_rows,
)

_BEHIND = "has an operand that is computed for the whole window"


class _ApartError(Exception):
    """Rows of a tensor would have to be kept, but lie apart in memory."""

    def __init__(self, tensor: str, culprit: str, reason: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor
        self.culprit = culprit
        self.reason = reason


def decide(program: Program, hops: Hops) -> Decisions:
    """Return which steps run on new rows of an input.

    Raises:
        NotStreamedError: The input or its axis does not exist or cannot be cut, the hop is not
            shorter than the window, the program has states, or no step runs on new rows.

    Cost: O(operands of the steps), once more for each tensor with rows apart, and for each output
    with rows, that is computed for the whole window.
    """
    port, axis = _stream_input(program, hops)
    computed_whole: set[str] = set()
    apart: set[str] = set()
    while True:
        deciding = _Deciding(
            program, hops, port.tensor, axis, frozenset(computed_whole), frozenset(apart)
        )
        try:
            found = deciding.decisions()
        except _ApartError as error:
            if error.tensor == port.tensor:
                raise NotStreamedError(error.culprit, error.reason) from error
            apart.add(error.tensor)  # made for the whole window instead
            continue
        whole = {each for each in program.output_tensors if deciding.root(each) not in found.flows}
        if whole <= computed_whole:
            break
        computed_whole |= whole  # all their rows are needed, not the newest alone
    if not found.steps:
        culprit = found.whole[0] if found.whole else WindowStep(port.name, "is read by no step")
        raise NotStreamedError(culprit.name, culprit.reason)
    return found


def _stream_input(program: Program, hops: Hops) -> tuple[Port, int]:
    """Return the input that is a stream and its stored axis.

    Raises:
        NotStreamedError: It cannot be one.
    """
    ports = {port.name: port for port in program.inputs}
    port = ports.get(hops.input)
    if port is None:
        known = ", ".join(map(repr, ports)) or "none"
        raise NotStreamedError(hops.input, f"is not an input of the model; inputs: {known}")
    tensor = program.tensors[port.tensor]
    shape = port.shape(tensor.shape)
    if program.dimensions:
        raise NotStreamedError(port.name, "has a range of sizes; state one size of each dimension")
    states = [name for name, each in program.tensors.items() if each.kind is TensorKind.STATE]
    if states:
        raise NotStreamedError(
            states[0], "is a state: the model runs on a stream as it is; build it without a hop"
        )
    if not 0 <= hops.axis < len(shape):
        raise NotStreamedError(
            port.name, f"has no axis {hops.axis}; its axes are 0 to {len(shape) - 1} of {shape}"
        )
    if not 0 < hops.rows < shape[hops.axis]:
        raise NotStreamedError(
            port.name,
            f"has {shape[hops.axis]} rows along axis {hops.axis}; a hop of {hops.rows} is not "
            f"between 1 and {shape[hops.axis] - 1}",
        )
    return port, hops.axis if port.axes is None else port.axes.index(hops.axis)


class _Deciding:
    """The decisions as they are made: axes first, needed rows backwards, then flows.

    Args:
        computed_whole: Outputs of which every row of the window is needed.
        apart: Tensors whose rows lie apart in memory, but would have to be kept.
    """

    def __init__(
        self,
        program: Program,
        hops: Hops,
        source: str,
        axis: int,
        computed_whole: frozenset[str],
        apart: frozenset[str],
    ) -> None:
        self._apart = apart
        self._program = program
        self._hops = hops
        self._written = {name for step in program.steps for name in step.writes}
        self._axes = {source: axis}
        self._along: dict[str, Along] = {}
        self._rates = {source: Fraction(hops.rows)}
        self._needed: dict[str, tuple[int, int]] = {}
        rows = program.tensors[source].shape[axis]
        self._flows = {source: Flow(rows, hops.rows, hops.rows, rows, Fraction(1))}
        self._steps: dict[str, HopStep] = {}
        self._whole: list[WindowStep] = []
        self._reach, self._late, self._alters = Fraction(1), Fraction(0), False
        self._find_axes()
        self._find_needed(computed_whole)

    def decisions(self) -> Decisions:
        """Return the decisions on every step."""
        for step in self._program.steps:
            if any(name and self.root(name) in self._flows for name in step.inputs):
                self._decide(step)
        for name in self._program.output_tensors:
            if self.root(name) in self._flows:
                self._note(self._flows[self.root(name)], Fraction(0))
        return Decisions(
            self._axes, self._flows, self._steps, tuple(self._whole),
            math.ceil(self._reach), self._late, self._alters,
        )  # fmt: skip

    def root(self, name: str) -> str:
        """Return the tensor that a step or the caller writes, whose bytes this one views."""
        while (alias := self._program.tensors[name].alias) and name not in self._written:
            name = alias.tensor
        return name

    # Which tensors have rows.

    def _axis(self, name: str) -> int | None:
        """Return the axis of the rows of a tensor, None if it has none."""
        alias = self._program.tensors[name].alias
        if name not in self._axes and name not in self._written and alias is not None:
            viewed = self._axis(alias.tensor)
            if viewed is not None:
                outer, inner = (self._program.tensors[each] for each in (alias.tensor, name))
                axis = _viewed_axis(outer, viewed, inner)
                if axis is not None:
                    self._axes[name] = axis
                    self._rates[name] = self._rates[alias.tensor]
        return self._axes.get(name)

    def _find_axes(self) -> None:
        for step in self._program.steps:
            axes = [self._axis(name) if name else None for name in step.inputs]
            if axes.count(None) == len(axes):
                continue
            operands = self._program.operands(step)
            along = step.operator.along(operands, axes)
            result = operands.result
            if along is None or result is None or result.name in self._apart:
                continue
            rates = {
                window.advance(self._rates[name])
                for name, window in zip(step.inputs, along.windows, strict=True)
                if window is not None
            }
            if len(rates) == 1:
                self._along[step.name] = along
                self._axes[result.name] = along.axis
                self._rates[result.name] = rates.pop()

    # Which rows of the window the outputs depend on.

    def _find_needed(self, computed_whole: frozenset[str]) -> None:
        for name in self._program.output_tensors:
            axis = self._axis(name)
            if axis is not None:
                rows = self._program.tensors[name].shape[axis]
                is_new = self._rates[name].denominator == 1 and name not in computed_whole
                newest = math.ceil(self._rates[name]) if is_new else rows
                self._need(name, (max(0, rows - newest), rows))
        for step in reversed(self._program.steps):
            operands = self._program.operands(step)
            along = self._along.get(step.name)
            for position, name in enumerate(step.inputs):
                axis = self._axis(name) if name else None
                if axis is None:
                    continue
                if along is None or along.windows[position] is None:
                    self._need(name, _read_whole(step.operator, operands, position)[axis])
                    continue
                if along.carried:
                    self._need(name, (0, self._program.tensors[name].shape[axis]))
                needed = self._needed.get(self.root(step.outputs[0]))
                window = along.windows[position]
                if needed is not None and window is not None:
                    low, high = window.under(*needed)
                    self._need(name, (max(0, low), min(window.length, high)))

    def _need(self, name: str, rows: tuple[int, int]) -> None:
        root = self.root(name)
        low, high = self._needed.get(root, rows)
        self._needed[root] = min(low, rows[0]), max(high, rows[1])

    # How each step runs.

    def _decide(self, step: Step) -> None:
        found = self._on_new_rows(step)
        if isinstance(found, HopStep):
            self._steps[step.name] = found
            self._flows[step.outputs[0]] = found.flow
            for name, taken in zip(step.inputs, found.taken, strict=True):
                if taken is not None:
                    read = self._flows[self.root(name)]
                    read.kept = max(read.kept, read.first_made - taken[0])
            return
        if found != _BEHIND:
            self._whole.append(WindowStep(step.name, found))
        for name in step.inputs:
            flow = self._flows.get(self.root(name)) if name else None
            if flow is not None:
                self._check_cut(step, name, found)
                older = flow.rows - flow.made
                flow.kept = max(flow.kept, older)
                self._note(flow, Fraction(older, flow.hop))

    def _check_cut(self, step: Step, name: str, reason: str) -> None:
        """Check that rows of a tensor can be kept.

        Raises:
            _ApartError: They lie apart.
        """
        root = self.root(name)
        if not is_cut(self._program.tensors[root], self._axes[root]):
            raise _ApartError(
                root,
                step.name,
                f"{reason}, and the rows of {root!r} cannot be kept, as they lie apart in memory",
            )

    def _note(self, flow: Flow, older: Fraction) -> None:
        """Note how far back a result reads rows that are older by so many runs, and how late."""
        self._reach = max(self._reach, flow.reach + older)
        self._late = max(self._late, Fraction((flow.rows - flow.end) * self._hops.rows, flow.hop))

    def _on_new_rows(self, step: Step) -> HopStep | str:
        """Return how a step makes new rows, or why it does not."""
        along = self._along.get(step.name)
        if along is None:
            return "depends on all rows of the window"
        operands = self._program.operands(step)
        assert operands.result is not None
        rows = operands.result.shape[along.axis]
        flows: list[Flow | None] = []
        ends: list[int] = []
        rates: list[Fraction] = []
        for name, window in zip(step.inputs, along.windows, strict=True):
            flow = None if window is None else self._flows.get(self.root(name))
            flows.append(flow)
            if window is None:
                continue
            if flow is None:
                return _BEHIND
            if window.count == 1 and flow.end != flow.rows:
                return "depends on all rows of the window"
            rates.append(window.advance(Fraction(flow.hop)))
            if rates[-1].denominator != 1:
                return (
                    f"moves by {window.stride} rows of its operand, which do not divide the "
                    f"{flow.hop} rows of a hop"
                )
            ends.append(window.made_of(flow.end))
        hop, end = int(rates[0]), min(rows, *ends)
        if along.carried:
            refused = self._refused_states(step, along)
            if refused:
                return refused
            self._alters = True
        pads = self._pads(step, along, end, rows)
        if pads and self._hops.padding is Padding.WINDOW:
            return (
                "pads rows along the axis of the stream at the borders of the window; with the "
                "padding of the stream it runs on new rows"
            )
        made = min(hop, rows)
        taken = tuple(
            None if window is None else window.under(end - made, end) for window in along.windows
        )
        reach = Fraction(1)
        for name, flow, read in zip(step.inputs, flows, taken, strict=True):
            if flow is not None and read is not None:
                older = flow.first_made - read[0]
                if read != (flow.first_made, flow.end):
                    self._check_cut(step, name, "reads other rows than those of a hop")
                if older > 0 and flow.made < flow.hop:
                    return "reads rows that are older than those of a hop"
                reach = max(reach, flow.reach + Fraction(max(0, older), flow.hop))
        pieces = _pieces(operands, along, taken, made)
        operator = step.operator.cut(operands, pieces, along)
        if operator is None:
            return "does not make all rows alike"
        self._alters |= pads
        return HopStep(along, Flow(rows, hop, made, end, reach), taken, operator)

    def _refused_states(self, step: Step, along: Along) -> str:
        """Return why the states of a step cannot be carried on, nothing if they can."""
        if self._hops.padding is Padding.WINDOW:
            return (
                "starts from the same state for each window; with the padding of the stream its "
                "state goes on"
            )
        for position, _ in along.carried:
            name = step.inputs[position] if position < len(step.inputs) else ""
            if name and self._program.tensors[self.root(name)].kind is not TensorKind.CONSTANT:
                return f"starts from {name!r}, which is no constant"
        return ""

    def _pads(self, step: Step, along: Along, end: int, rows: int) -> bool:
        """Tell whether rows that some output depends on are made of padding, or are too late."""
        if end < rows:
            return True
        needed = self._needed.get(self.root(step.outputs[0]))
        if needed is None or needed[0] >= needed[1]:
            return False
        return any(
            under[0] < 0 or under[1] > window.length
            for window in along.windows
            if window is not None
            for under in [window.under(*needed)]
        )


def _read_whole(operator: Operator, operands: Operands, position: int) -> Region:
    """Return the region of an input that the whole result depends on."""
    tensor, result = operands.inputs[position], operands.result
    assert tensor is not None
    if result is None or len(operands.outputs) != 1 or not result.num_elements:
        return whole(tensor)
    return operator.input_region(operands, position, whole(result))


def _viewed_axis(outer: Tensor, axis: int, inner: Tensor) -> int | None:
    """Return the axis of a view that has the rows of what it views, None if none has."""
    if inner.alias is None or inner.alias.offset or inner.size != outer.size:
        return None
    rows, row = outer.shape[axis], math.prod(outer.shape[axis + 1 :]) * outer.dtype.bits
    for own, length in enumerate(inner.shape):
        if length == rows and math.prod(inner.shape[own + 1 :]) * inner.dtype.bits == row:
            return own
    return None


def _pieces(
    operands: Operands, along: Along, taken: Sequence[tuple[int, int] | None], made: int
) -> Operands:
    """Return the operands of a step that makes so many rows."""
    inputs: list[Tensor | None] = []
    for tensor, axis, rows in zip(operands.inputs, along.axes, taken, strict=True):
        if tensor is None or axis is None or rows is None:
            inputs.append(tensor)
        else:
            inputs.append(with_rows(tensor, axis, rows[1] - rows[0]))
    assert operands.result is not None
    return Operands(tuple(inputs), (with_rows(operands.result, along.axis, made),))
