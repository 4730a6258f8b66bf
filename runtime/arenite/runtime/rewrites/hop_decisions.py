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
    HopPiece,
    Hops,
    HopStep,
    NotStreamedError,
    Padding,
    WindowStep,
    is_cut,
    with_rows,
)

_BEHIND = "has an operand that is computed for the whole window"
_PADS = (
    "pads rows along the axis of the stream at the borders of the window, and no others are left "
    "to keep; with the padding of the stream it runs on new rows"
)


class _UnmadeError(Exception):
    """All rows of a tensor are read, but some are not made."""

    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor


class _ApartError(Exception):
    """Rows of a tensor would have to be kept, but cannot be."""

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

    Cost: O(operands of the steps), once more for each tensor whose rows cannot be kept, and for
    each one with rows of which the whole window is computed or read.
    """
    port, axis = _stream_input(program, hops)
    needed_whole: set[str] = set()
    apart: set[str] = set()
    while True:
        deciding = _Deciding(
            program, hops, port.tensor, axis, frozenset(needed_whole), frozenset(apart)
        )
        try:
            found = deciding.decisions()
        except _UnmadeError as error:
            needed_whole.add(error.tensor)
            continue
        except _ApartError as error:
            if error.tensor == port.tensor:
                raise NotStreamedError(error.culprit, error.reason) from error
            apart.add(error.tensor)  # made for the whole window instead
            continue
        whole = {each for each in program.output_tensors if deciding.root(each) not in found.flows}
        if whole <= needed_whole:
            break
        needed_whole |= whole  # all their rows are needed, not the newest alone
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
        needed_whole: Tensors of which every row of the window is needed.
        apart: Tensors whose rows would have to be kept, but cannot be.
    """

    def __init__(
        self,
        program: Program,
        hops: Hops,
        source: str,
        axis: int,
        needed_whole: frozenset[str],
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
        self._runs = Fraction(rows, hops.rows)
        """Runs that make a window."""
        self._flows = {source: Flow(rows, hops.rows, hops.rows, rows, Fraction(1))}
        self._differing = {self.root(name) for name in program.input_tensors} - {source}
        """Tensors that are others in each run and no stream."""
        self._steps: dict[str, HopStep] = {}
        self._whole: list[WindowStep] = []
        self._reach, self._late, self._alters = Fraction(1), Fraction(0), False
        self._find_axes()
        self._find_needed(needed_whole)

    def decisions(self) -> Decisions:
        """Return the decisions on every step."""
        for step in self._program.steps:
            if any(name and self.root(name) in self._flows for name in step.inputs):
                self._decide(step)
            self._note_differing(step)
        for name in self._program.output_tensors:
            flow = self._flows.get(self.root(name))
            if flow is not None:
                flow.keep(flow.newest[0])
                self._note(flow, flow.newest[0])
        return Decisions(
            self._axes, self._flows, self._steps, tuple(self._whole),
            math.ceil(self._reach), self._late, self._alters,
        )  # fmt: skip

    def _note_differing(self, step: Step) -> None:
        """Note results that are others in each run, those on new rows aside."""
        roots = {self.root(name) for name in step.reads}
        if not roots.isdisjoint(self._differing | self._flows.keys()):
            self._differing.update(set(step.writes) - self._flows.keys())

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

    def _find_needed(self, needed_whole: frozenset[str]) -> None:
        for name in self._program.output_tensors:
            axis = self._axis(name)
            if axis is not None:
                rows = self._program.tensors[name].shape[axis]
                is_new = self._rates[name].denominator == 1
                newest = math.ceil(self._rates[name]) if is_new else rows
                self._need(name, (max(0, rows - newest), rows))
        for name in needed_whole:
            axis = self._axis(name)
            if axis is not None:
                self._need(name, (0, self._program.tensors[name].shape[axis]))
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
            for piece in found.pieces:
                for name, taken in zip(step.inputs, piece.taken, strict=True):
                    if taken is not None:
                        self._keep(step, name, taken[0])
            if not (found.flow.made or found.flow.low) and self._reads_new(step):
                self._whole.append(WindowStep(step.name, _PADS))
            return
        if found != _BEHIND:
            self._whole.append(WindowStep(step.name, found))
        for name in step.inputs:
            flow = self._flows.get(self.root(name)) if name else None
            if flow is not None:
                if flow.made:
                    self._check_cut(step, name, found)
                if flow.low:
                    raise _UnmadeError(self.root(name))
                self._keep(step, name, flow.stop - flow.rows)
                self._note(flow, flow.stop - flow.rows)

    def _keep(self, step: Step, name: str, start: int) -> None:
        """Keep the older rows of a tensor from this one on.

        Raises:
            _ApartError: They are others in this run.
        """
        root = self.root(name)
        flow = self._flows[root]
        if flow.differs and flow.older(flow.front or start):
            raise _ApartError(root, step.name, f"reads rows of {root!r}, which change in each run")
        flow.keep(start)

    def _reads_new(self, step: Step) -> bool:
        """Tell whether some rows that a step reads are new ones, others those of earlier runs."""
        reads = (self._flows.get(self.root(name)) for name in step.inputs if name)
        return any(flow is not None and flow.made for flow in reads)

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

    def _note(self, flow: Flow, start: int) -> None:
        """Note how far back a result depends on rows from this one on, and how late they are."""
        self._reach = max(self._reach, self._reach_of(flow, start))
        self._late = max(self._late, Fraction((flow.rows - flow.stop) * self._hops.rows, flow.hop))

    def _reach_of(self, flow: Flow, start: int) -> Fraction:
        """Return the runs whose input the rows from this one on depend on."""
        found = flow.reach + Fraction(flow.older(start), flow.hop)
        return found if self._hops.padding is Padding.STREAM else min(found, self._runs)

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
            if window.count == 1 and (flow.front or flow.end != flow.rows):
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
        flow = Flow(rows, hop, min(hop, rows), end, Fraction(1))
        flow.differs = any(each is not None and each.differs for each in flows) or any(
            name and window is None and self.root(name) in self._differing
            for name, window in zip(step.inputs, along.windows, strict=True)
        )
        if self._hops.padding is Padding.WINDOW:
            reads = [each for each in flows if each is not None]
            if pads or any(each.front or not each.made for each in reads):
                self._make_borders_again(flow, step, along, flows)
        found = self._in_pieces(step, along, flow, flows)
        if isinstance(found, HopStep):
            self._alters |= pads and self._hops.padding is Padding.STREAM
        return found

    def _make_borders_again(
        self, flow: Flow, step: Step, along: Along, flows: Sequence[Flow | None]
    ) -> None:
        """State which rows of a result depend on padding, and whether others are worth keeping."""
        low = max(0, self._needed.get(self.root(step.outputs[0]), (0, flow.rows))[0])
        read_by = [
            (window, read)
            for window, read in zip(along.windows, flows, strict=True)
            if window is not None and read is not None
        ]
        front = max(window.made_from(read.front) for window, read in read_by)
        flow.front = min(front, flow.rows) if low < front else 0
        flow.back = flow.rows - flow.end
        again = max(0, flow.front - low) + flow.made + flow.back
        reads_unmade = any(
            window.under(flow.first_made, flow.end)[0] < read.low for window, read in read_by
        )
        if again >= flow.rows - low or reads_unmade or flow.differs:
            flow.made = 0
        if flow.front or not flow.made:
            flow.low = low
        if flow.made:
            flow.keep(flow.front or flow.first_made)

    def _in_pieces(
        self, step: Step, along: Along, flow: Flow, flows: Sequence[Flow | None]
    ) -> HopStep | str:
        """Return the pieces in which a step makes rows, or why it does not."""
        operands = self._program.operands(step)
        if flow.made:
            wanted = [(flow.first_made, flow.end)]
            wanted += [(flow.low, flow.front)] if flow.front else []
            wanted += [(flow.end, flow.stop)] if flow.back else []
        else:
            wanted = [(flow.low, flow.rows)]
        if len(wanted) > 1 and not is_cut(self._program.tensors[step.outputs[0]], along.axis):
            return "makes rows at the borders of the window that lie apart in memory"
        pieces: list[HopPiece] = []
        for rows in wanted:
            is_new = rows == (flow.first_made, flow.end)
            under = [None if each is None else each.under(*rows) for each in along.windows]
            taken = tuple(
                each if is_new or each is None or read is None
                else (max(0, each[0]), min(read.rows, each[1]))
                for each, read in zip(under, flows, strict=True)
            )  # fmt: skip
            for name, read, each in zip(step.inputs, flows, taken, strict=True):
                if read is None or each is None:
                    continue
                if each != ((read.first_made, read.end) if read.made else (read.low, read.rows)):
                    self._check_cut(step, name, "reads other rows than those of a hop")
                if read.older(each[0]) and read.made < read.hop:
                    return "reads rows that are older than those of a hop"
                flow.reach = max(flow.reach, self._reach_of(read, each[0]))
            operator = None
            if not is_new and taken[0] is not None and taken[1:] == tuple(under[1:]):
                operator = step.operator.cut_at_border(along, rows, taken[0])
            if operator is None and taken == tuple(under):
                operator = step.operator.cut(
                    operands, _pieces(operands, along, taken, rows), along
                )
            if operator is None:
                return "does not make all rows alike"
            pieces.append(HopPiece(rows, taken, operator))
        return HopStep(along, flow, tuple(pieces))

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
    operands: Operands,
    along: Along,
    taken: Sequence[tuple[int, int] | None],
    made: tuple[int, int],
) -> Operands:
    """Return the operands of a step that makes some rows."""
    inputs: list[Tensor | None] = []
    for tensor, axis, rows in zip(operands.inputs, along.axes, taken, strict=True):
        if tensor is None or axis is None or rows is None:
            inputs.append(tensor)
        else:
            inputs.append(with_rows(tensor, axis, rows[1] - rows[0]))
    assert operands.result is not None
    return Operands(tuple(inputs), (with_rows(operands.result, along.axis, made[1] - made[0]),))
