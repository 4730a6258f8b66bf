"""A run: the rows of tensors that its turns read and write, and where these rows lie.

It is stated apart from the program: a reader draws a run without operators and aliases, and
`verify_run` checks one without the code that made it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from arenite.planner.operators.bands import Band, Pieces
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.system import Stage, System
from arenite.planner.tensors import ROW_AXIS, Tensor, TensorKind, num_rows, row_bytes


class Rows(NamedTuple):
    """Some rows of a tensor.

    Attributes:
        stop: The row after the last.
    """

    tensor: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Where the rows of a tensor lie.

    Attributes:
        row_bytes: Bytes of a row.
        offsets: The first byte of each row in that memory; one for a tensor that is never cut.
    """

    name: str
    memory: str
    row_bytes: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TouchingTurn:
    """A turn: a step whole, or some of its rows.

    Attributes:
        first: The first of the rows; of those that it sums up, if it does.
        rows: How many; 0 for the whole step.
        reads: Rows that it reads.
    """

    step: str
    first: int
    rows: int
    reads: tuple[Rows, ...]
    writes: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a program.

    Attributes:
        tensors: The tensors that turns touch, constants aside.
        turns: The turns, in order.
        inputs: Names of the tensors that are there before the first turn.
        outputs: Names of those that must be there after the last.
    """

    tensors: tuple[PlacedRows, ...]
    turns: tuple[TouchingTurn, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageRun:
    """The run of a model of a system, as if it were alone.

    Attributes:
        turns: Its turns among those of the program.
        run: What they touch. What it reads of earlier stages is among its inputs.
        given: Names of the tensors of its own inputs.
        outputs: Names of the tensors of its outputs, by the names of the outputs.
    """

    stage: Stage
    turns: range
    run: Run
    given: tuple[str, ...]
    outputs: Mapping[str, str]


def stage_runs(
    whole: Run,
    system: System,
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str]],
    states: Sequence[str],
) -> Iterator[StageRun]:
    """Yield the run of each model of a system.

    Args:
        whole: The run of all of them, one after another.
        system: The models.
        inputs: Name and tensor of each input of the program.
        outputs: Name and tensor of each output.
        states: Tensors of the states.
    """
    placed = {tensor.name for tensor in whole.tensors}
    made: dict[str, str] = {}
    begun = 0
    its_inputs, its_outputs = iter(inputs), iter(outputs)
    for stage in system.stages:
        turns = range(begun, begun + stage.num_steps)
        begun = turns.stop
        given, own = (
            {name: tensor for name, tensor in islice(ports, count) if tensor in placed}
            for ports, count in (
                (its_inputs, stage.num_inputs), (its_outputs, stage.num_outputs)
            )
        )  # fmt: skip
        read = (made[name] for name in stage.reads if name in made)
        run = replace(
            whole,
            turns=whole.turns[turns.start : turns.stop],
            inputs=tuple(dict.fromkeys((*given.values(), *read, *states))),
            outputs=tuple(dict.fromkeys((*own.values(), *states))),
        )
        made |= own
        yield StageRun(stage, turns, run, tuple(given.values()), own)


def run_of(program: Program, problem: Problem, plan: Plan) -> Run:
    """Return the run of a program whose storage is shared and planned.

    Cost: O(rows that all turns touch).
    """
    return _Touching(program, problem, plan).run()


class _Touching:
    def __init__(self, program: Program, problem: Problem, plan: Plan) -> None:
        self._program = program
        self._starts = {
            record.name: (record.memory, offset)
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        }
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the tensors that are cut
        for step in program.steps:
            if isinstance(step.operator, Band):
                for pieces in (*step.operator.inputs, *step.operator.outputs):
                    if pieces is not None and pieces.firsts:
                        self._shapes[pieces.tensor] = pieces.shape
        self._placed: dict[str, dict[int, tuple[str, int, int]]] = {}

    def run(self) -> Run:
        program = self._program
        turns = tuple(self._turn(step) for step in program.steps)
        states = [name for name, each in program.tensors.items() if each.kind is TensorKind.STATE]
        inputs = self._named((*program.input_tensors, *states))
        outputs = self._named((*program.output_tensors, *states))
        tensors = tuple(self._tensor(name, rows) for name, rows in self._placed.items())
        return Run(tensors, turns, inputs, outputs)

    def _named(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(rows.tensor for name in dict.fromkeys(names) for rows in self._whole(name))

    def _turn(self, step: Step) -> TouchingTurn:
        band = step.operator
        if not isinstance(band, Band):
            return TouchingTurn(
                step.name, 0, 0,
                tuple(rows for name in step.reads for rows in self._whole(name)),
                tuple(rows for name in step.writes for rows in self._whole(name)),
            )  # fmt: skip
        return TouchingTurn(
            band.step, band.first, band.rows,
            tuple(self._pieces(band.inputs, step.inputs)),
            tuple(self._pieces(band.outputs, step.outputs)),
        )  # fmt: skip

    def _pieces(self, operands: Sequence[Pieces | None], names: Sequence[str]) -> Iterator[Rows]:
        place = 0
        for pieces in operands:
            count = 1 if pieces is None else pieces.count
            among = names[place : place + count]
            place += count
            if pieces is None or not among[0]:
                continue
            if not pieces.firsts:
                yield from self._whole(among[0])
                continue
            for name, first in zip(among, pieces.firsts, strict=True):
                self._note(pieces.tensor, self._program.tensors[name], first)
            stop = pieces.firsts[-1] + num_rows(self._program.tensors[among[-1]])
            yield Rows(pieces.tensor, pieces.firsts[0], stop)
        for name in names[place:]:  # the sums, of which each turn's lie where the last's do
            yield from self._whole(self._program.root(name)[0])

    def _whole(self, name: str) -> Iterator[Rows]:
        """Yield all rows of a tensor, none of a constant or of one without bytes."""
        root = self._program.root(name)[0]
        tensor = self._program.tensors[name]
        if self._program.tensors[root].kind is TensorKind.CONSTANT or tensor.size == 0:
            return
        self._note(name, tensor, 0)
        yield Rows(name, 0, self._count(name))

    def _count(self, name: str) -> int:
        return self._shapes[name][ROW_AXIS] if name in self._shapes else 1

    def _note(self, name: str, piece: Tensor, first: int) -> None:
        """Note where the rows of a piece lie, or a tensor that is never cut."""
        root, offset = self._program.root(piece.name)
        memory, start = self._starts[root]
        placed = self._placed.setdefault(name, {})
        is_cut = name in self._shapes
        size = row_bytes(piece) if is_cut else piece.size
        for row in range(num_rows(piece) if is_cut else 1):
            placed[first + row] = (memory, start + offset + row * size, size)

    def _tensor(self, name: str, placed: dict[int, tuple[str, int, int]]) -> PlacedRows:
        memory, somewhere, size = next(iter(placed.values()))
        # Rows that no turn touches may be missing; any place will do for them.
        offsets = (
            placed.get(row, (memory, somewhere, size))[1] for row in range(self._count(name))
        )
        return PlacedRows(name, memory, size, tuple(offsets))
