"""Turn regions that run in bands into ordinary steps and tensors.

A tensor that is made and read in one region falls into pieces: rows that are made at one turn and
die at another, each a tensor of its own. A tensor that is needed whole before or after the region
stays one; the region reads and writes pieces that lie in it. So derivation, placement, checks
and the runtime see ordinary steps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from arenite.planner import Alias, DType, Program, ShouldStop, Step, Tensor, TensorKind
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs import Names, RowReads, RowStep, never
from arenite.planner.tensors import num_rows, row_bytes
from arenite.strategies.bands.paths import SearchStoppedError
from arenite.strategies.bands.regions import Surroundings, Turn


@dataclass(frozen=True, slots=True)
class BandedRegion:
    """A region and the order in which its rows are made.

    Attributes:
        start: Index of the first step.
        turns: Turns of its steps, by their index in the program.
        surroundings: Tensors that the steps around it need.
    """

    start: int
    steps: tuple[RowStep, ...]
    turns: tuple[Turn, ...]
    surroundings: Surroundings


def expand(
    program: Program, regions: Iterable[BandedRegion], should_stop: ShouldStop = never
) -> Program:
    """Return the program with regions run in bands.

    Args:
        program: The program, none of its storage shared yet.
        regions: Regions that do not overlap, in order.

    Cost: O(rows made + rows read at all turns).
    """
    tensors = dict(program.tensors)
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    steps: list[Step] = []
    done = 0
    for region in regions:
        steps += program.steps[done : region.start]
        steps += _Expansion(program, region, tensors, names).steps(should_stop)
        done = region.start + len(region.steps)
    steps += program.steps[done:]
    return replace(program, tensors=tensors, steps=tuple(steps))


@dataclass(frozen=True, slots=True)
class _RowPiece:
    first: int
    stop: int
    name: str


class _Expansion:
    """The steps of one region; it adds its tensors to the program's and removes those it cuts."""

    def __init__(
        self, program: Program, region: BandedRegion, tensors: dict[str, Tensor], names: Names
    ) -> None:
        self._program = program
        self._region = region
        self._tensors = tensors
        self._names = names
        self._pieces: dict[str, list[_RowPiece]] = {}
        self._sums: dict[str, str] = {}

    def steps(self, should_stop: ShouldStop) -> list[Step]:
        region = self._region
        made = self._turns_of_rows()
        last_read = self._last_reads(made)
        for row_step in region.steps:
            name = row_step.result.name
            if row_step.accumulators or name not in made:
                continue
            deaths = None if name in region.surroundings.kept else last_read[name]
            self._cut(name, made[name], deaths)
        for name in region.surroundings.consumed:
            self._cut(name, [0] * num_rows(self._tensors[name]), last_read[name])
        found: list[Step] = []
        for turn in region.turns:
            if should_stop():
                raise SearchStoppedError
            found.append(self._step(turn))
        for row_step in region.steps:
            name = row_step.result.name
            if name in self._pieces and name not in region.surroundings.kept:
                del self._tensors[name]
        return found

    def _turns_of_rows(self) -> dict[str, list[int]]:
        """Return for each result made in rows the turn at which each row is made."""
        found: dict[str, list[int]] = {}
        for number, turn in enumerate(self._region.turns):
            row_step = self._row_step(turn)
            if not row_step.accumulators:
                found.setdefault(row_step.result.name, []).extend([number] * turn.rows)
        return found

    def _last_reads(self, made: Mapping[str, list[int]]) -> dict[str, list[int]]:
        """Return for each tensor that dies in the region the last turn that needs each row."""
        last = {name: list(turns) for name, turns in made.items()}
        for name in self._region.surroundings.consumed:
            last[name] = [0] * num_rows(self._tensors[name])
        for number, turn in enumerate(self._region.turns):
            for reads in self._row_step(turn).reads:
                if reads.tensor in last:
                    low, high = _needed(reads, turn)
                    last[reads.tensor][low:high] = [number] * (high - low)
        return last

    def _cut(self, name: str, births: Sequence[int], deaths: Sequence[int] | None) -> None:
        """Cut a tensor into pieces of rows that are born together, and die together."""
        region, tensor = self._region, self._tensors[name]
        lies_in = name in region.surroundings.kept or name in region.surroundings.consumed
        when = list(zip(births, deaths or births, strict=True))
        cuts = [0, *(row for row in range(1, len(when)) if when[row] != when[row - 1]), len(when)]
        pieces: list[_RowPiece] = []
        for first, stop in pairwise(cuts):
            label = self._names.take(f"{name}/rows {first}" + f" to {stop}" * (stop > first + 1))
            self._tensors[label] = replace(
                tensor,
                name=label,
                shape=(1, stop - first, *tensor.shape[2:]),
                kind=TensorKind.ACTIVATION,
                alias=Alias(name, first * row_bytes(tensor)) if lies_in else None,
            )
            pieces.append(_RowPiece(first, stop, label))
        self._pieces[name] = pieces

    def _step(self, turn: Turn) -> Step:
        row_step = self._row_step(turn)
        step = row_step.step
        by_position = {reads.position: reads for reads in row_step.reads}
        inputs: list[str] = []
        operands: list[Pieces | None] = []
        for position, name in enumerate(step.inputs):
            reads = by_position.get(position)
            pieces = self._pieces.get(name) if reads is not None else None
            if reads is None or pieces is None:
                inputs.append(name)
                operands.append(Pieces(name, self._tensors[name].shape) if name else None)
                continue
            low, high = _needed(reads, turn)
            among = _overlapping(pieces, low, high)
            inputs += [piece.name for piece in among]
            operands.append(self._operand(name, among))
        made = row_step.result.name
        if row_step.accumulators:
            outputs = self._sum_up(row_step, turn, inputs)
            result = Pieces(made, row_step.result.shape)
        else:
            among = _overlapping(self._pieces[made], turn.first, turn.first + turn.rows)
            outputs = [piece.name for piece in among]
            result = self._operand(made, among)
        band = Band(
            step.operator,
            step.name,
            turn.first,
            turn.rows,
            tuple(operands),
            (result,),
            tuple(p for p, name in enumerate(step.inputs) if name in row_step.overwritable),
            bool(row_step.accumulators),
            row_step.multiply_adds * turn.rows // row_step.num_rows,
            working_memory=row_step.scratch,
        )
        label = f"{step.name}/rows {turn.first}"
        if turn.rows > 1:
            label += f" to {turn.first + turn.rows}"
        return Step(self._names.take(label), band, tuple(inputs), tuple(outputs))

    def _sum_up(self, row_step: RowStep, turn: Turn, inputs: list[str]) -> list[str]:
        """Return the outputs of a turn that sums up rows, and add the sums to its inputs."""
        step = row_step.step.name
        before = self._sums.get(step)
        if before is not None:
            inputs.append(before)
        name = self._names.take(f"{step}/sums")
        alias = None if before is None else Alias(before)
        self._tensors[name] = Tensor(name, DType.UINT8, (row_step.accumulators,), alias=alias)
        self._sums[step] = name
        is_last = turn.first + turn.rows == row_step.num_rows
        return [row_step.result.name if is_last else "", name]

    def _operand(self, name: str, pieces: Sequence[_RowPiece]) -> Pieces:
        shape = self._program.tensors[name].shape
        return Pieces(name, shape, tuple(piece.first for piece in pieces))

    def _row_step(self, turn: Turn) -> RowStep:
        return self._region.steps[turn.step - self._region.start]


def _overlapping(pieces: Sequence[_RowPiece], low: int, high: int) -> Sequence[_RowPiece]:
    """Return the pieces, in order, of which some rows lie in [low, high).

    Cost: O(log(pieces) + those returned).
    """
    first = bisect_right(pieces, low, key=lambda piece: piece.stop)
    return pieces[first : bisect_left(pieces, high, first, key=lambda piece: piece.first)]


def _needed(reads: RowReads, turn: Turn) -> tuple[int, int]:
    return reads.needed(turn.first, turn.first + turn.rows)
