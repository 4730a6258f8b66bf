"""Turn regions that run in bands into ordinary steps and tensors.

A tensor that is made and read in one region falls into pieces: rows that are made at one turn and
die at another, each a tensor of its own. A tensor that is needed whole before or after the region
stays one; the region reads and writes pieces that lie in it. So derivation, placement, checks
and the runtime see ordinary steps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from arenite.planner import Alias, DType, Program, ShouldStop, Step, Tensor, TensorKind
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs import Names, RowReads, RowStep, never
from arenite.planner.sizes import same_lengths
from arenite.planner.tensors import num_rows, row_bytes
from arenite.strategies.bands.columns import Columns, NarrowStep, cut
from arenite.strategies.bands.paths import SearchStoppedError
from arenite.strategies.bands.regions import Surroundings, Turn


@dataclass(frozen=True, slots=True)
class BandedRegion:
    """A region and the order in which its rows are made.

    Attributes:
        start: Index of the first step.
        turns: Turns of its steps, by their index in the program.
        surroundings: Tensors that the steps around it need.
        views: Columns of an operand that a step reads, by the step's name and the position.
        made: Columns that are made of tensors that other strips make, too.
        wider: Names in the model of steps and tensors that are strips.
    """

    start: int
    steps: tuple[RowStep, ...]
    turns: tuple[Turn, ...]
    surroundings: Surroundings
    views: Mapping[tuple[str, int], Columns] = field(default_factory=dict)
    made: Mapping[str, Columns] = field(default_factory=dict)
    wider: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StripOfRegion:
    """A region as it makes some columns of its result.

    Attributes:
        region: The region as it would make all.
        steps: Its steps, narrow.
    """

    region: BandedRegion
    steps: Sequence[NarrowStep]


def expand(
    program: Program,
    regions: Iterable[BandedRegion | StripOfRegion],
    should_stop: ShouldStop = never,
    *,
    lays_over: bool = False,
) -> Program:
    """Return the program with regions run in bands.

    Args:
        program: The program, none of its storage shared yet.
        regions: Regions that do not overlap, in order; strips of a region one after the other.
        lays_over: Whether a tensor that is kept lies where another is whose rows die as its own
            are made: tokens, say, to which each layer adds something.

    Cost: O(rows made + rows read at all turns).
    """
    tensors = dict(program.tensors)
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    steps: list[Step] = []
    done = 0
    for each in regions:
        region = each if isinstance(each, BandedRegion) else _narrow(each, tensors, names)
        steps += program.steps[done : region.start]
        laid = program if lays_over and region is each else None
        steps += _Expansion(region, tensors, names, laid).steps(should_stop)
        done = region.start + len(region.steps)
    steps += program.steps[done:]
    return replace(program, tensors=tensors, steps=tuple(steps))


def _narrow(strip: StripOfRegion, tensors: dict[str, Tensor], names: Names) -> BandedRegion:
    """Return a region of narrow steps, and add what lies between them to the tensors."""
    region, last = strip.region, strip.steps[-1]
    made = {each.row_step.result.name: each.made for each in strip.steps[:-1]}
    ends = f"/columns {last.made[0]} to {last.made[1]}"
    called = {name: names.take(name + ends) for name in made}
    for name, columns in made.items():
        tensors[called[name]] = cut(tensors[name], called[name], columns)
    views: dict[tuple[str, int], Columns] = {}
    wider = {label: name for name, label in called.items()}
    steps: list[RowStep] = []
    for each in strip.steps:
        row_step, step = each.row_step, each.row_step.step
        label = names.take(step.name + ends)
        wider[label] = step.name
        for position, (first, stop) in each.read.items():
            name = step.inputs[position]
            own = made.get(name, (0, tensors[name].shape[2]))
            if (first, stop) != own:
                views[label, position] = (first - own[0], stop - own[0])
        in_part = {step.inputs[position] for at, position in views if at == label}
        result = called.get(row_step.result.name)
        steps.append(
            replace(
                row_step,
                step=Step(
                    label,
                    each.operator,
                    tuple(called.get(name, name) for name in step.inputs),
                    tuple(called.get(name, name) for name in step.outputs),
                ),
                result=row_step.result if result is None else tensors[result],
                reads=tuple(
                    replace(reads, tensor=called.get(reads.tensor, reads.tensor))
                    for reads in row_step.reads
                ),
                overwritable=tuple(
                    called[name]
                    for name in row_step.overwritable
                    if name in called and name not in in_part
                ),
                multiply_adds=each.multiply_adds,
                scratch=each.scratch,
            )
        )
    result = last.row_step.result.name
    around = Surroundings(frozenset(), frozenset({result}), region.surroundings.carried)
    return BandedRegion(
        region.start, tuple(steps), region.turns, around, views, {result: last.made}, wider
    )


@dataclass(frozen=True, slots=True)
class _RowPiece:
    first: int
    stop: int
    name: str


class _Expansion:
    """The steps of one region; it adds its tensors to the program's and removes those it cuts."""

    def __init__(
        self, region: BandedRegion, tensors: dict[str, Tensor], names: Names, laid: Program | None
    ) -> None:
        self._region = region
        self._tensors = tensors
        self._names = names
        self._laid = laid
        self._pieces: dict[str, list[_RowPiece]] = {}
        self._sums: dict[str, str] = {}
        self._viewed: dict[tuple[str, int, Columns], str] = {}

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
        if self._laid is not None:
            self._lay_over(self._laid, made, last_read)
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
        columns = region.made.get(name)
        shape, shift = tensor.shape, 0
        if columns is not None:
            cuts = list(range(len(when) + 1))  # a row of the strip is no whole row
            shape = cut(tensor, name, columns).shape
            shift = columns[0] * _column_bytes(tensor)
        pieces: list[_RowPiece] = []
        for first, stop in pairwise(cuts):
            label = self._names.take(f"{name}/rows {first}" + f" to {stop}" * (stop > first + 1))
            self._tensors[label] = replace(
                tensor,
                name=label,
                shape=(1, stop - first, *shape[2:]),
                kind=TensorKind.ACTIVATION,
                alias=Alias(name, first * row_bytes(tensor) + shift) if lies_in else None,
            )
            pieces.append(_RowPiece(first, stop, label))
        self._pieces[name] = pieces

    def _lay_over(
        self,
        program: Program,
        made: Mapping[str, Sequence[int]],
        last_read: Mapping[str, Sequence[int]],
    ) -> None:
        """Put results that are kept where a tensor is whose rows they take the place of."""
        free = [
            name
            for name in sorted(self._region.surroundings.consumed)
            if program.tensors[name].alias is None and name not in program.input_tensors
        ]
        for row_step in self._region.steps:
            result = self._tensors.get(row_step.result.name)
            if result is None or result.name not in self._region.surroundings.kept:
                continue
            if result.alias is not None or result.name not in made:
                continue
            for name in free:
                tensor = self._tensors[name]
                is_alike = tensor.dtype == result.dtype and same_lengths(
                    tensor.shape, result.shape
                )
                in_place = name in row_step.overwritable
                if is_alike and _takes_place(
                    last_read[name], made[result.name], in_place=in_place
                ):
                    self._tensors[result.name] = replace(result, alias=Alias(name))
                    free.remove(name)
                    break

    def _step(self, turn: Turn) -> Step:
        row_step = self._row_step(turn)
        step = row_step.step
        by_position = {reads.position: reads for reads in row_step.reads}
        inputs: list[str] = []
        operands: list[Pieces | None] = []
        for position, name in enumerate(step.inputs):
            reads = by_position.get(position)
            pieces = self._pieces.get(name) if reads is not None else None
            columns = self._region.views.get((step.name, position))
            if reads is not None and columns is not None:
                names, view = self._view(name, range(*_needed(reads, turn)), columns)
                inputs += names
                operands.append(view)
                continue
            if reads is None or pieces is None:
                inputs.append(name)
                operands.append(self._whole(name) if name else None)
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
            self._region.wider.get(step.name, ""),
            row_step.scratch,
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

    def _whole(self, name: str) -> Pieces:
        return Pieces(name, self._tensors[name].shape, wider=self._region.wider.get(name, ""))

    def _operand(self, name: str, pieces: Sequence[_RowPiece]) -> Pieces:
        columns = self._region.made.get(name)
        firsts = tuple(piece.first for piece in pieces)
        if columns is None:
            return replace(self._whole(name), firsts=firsts)
        return self._strip(name, columns, firsts)

    def _strip(self, name: str, columns: Columns, firsts: tuple[int, ...]) -> Pieces:
        """Return rows of columns of a tensor."""
        label = f"{name}/columns {columns[0]} to {columns[1]}"
        shape = cut(self._tensors[name], label, columns).shape
        return Pieces(label, shape, firsts, self._region.wider.get(name, name))

    def _view(self, name: str, rows: range, columns: Columns) -> tuple[list[str], Pieces]:
        """Return columns of rows of a tensor, each row a tensor where it lies."""
        tensor, found = self._tensors[name], []
        shift = columns[0] * _column_bytes(tensor)
        shape = (1, 1, columns[1] - columns[0], *tensor.shape[3:])
        for row in rows:
            if (name, row, columns) not in self._viewed:
                place = row * row_bytes(tensor)
                lies = Alias(name, place + shift)
                if name in self._pieces:
                    (piece,) = _overlapping(self._pieces[name], row, row + 1)
                    lies = Alias(piece.name, (row - piece.first) * row_bytes(tensor) + shift)
                label = self._names.take(f"{name}/columns {columns[0]} to {columns[1]}/row {row}")
                self._tensors[label] = replace(
                    tensor, name=label, shape=shape, kind=TensorKind.ACTIVATION, alias=lies
                )
                self._viewed[name, row, columns] = label
            found.append(self._viewed[name, row, columns])
        return found, self._strip(name, columns, tuple(rows))

    def _row_step(self, turn: Turn) -> RowStep:
        return self._region.steps[turn.step - self._region.start]


def _overlapping(pieces: Sequence[_RowPiece], low: int, high: int) -> Sequence[_RowPiece]:
    """Return the pieces, in order, of which some rows lie in [low, high).

    Cost: O(log(pieces) + those returned).
    """
    first = bisect_right(pieces, low, key=lambda piece: piece.stop)
    return pieces[first : bisect_left(pieces, high, first, key=lambda piece: piece.first)]


def _column_bytes(tensor: Tensor) -> int:
    return row_bytes(tensor) // tensor.shape[2]


def _takes_place(deaths: Sequence[int], births: Sequence[int], *, in_place: bool) -> bool:
    """Tell whether rows are made where others die, before more of these do.

    Args:
        deaths: The last turn that reads each row of the one tensor.
        births: The turn that makes each row of the other.
        in_place: Whether a row may be made at the turn that reads the other.
    """
    turns = sorted(set(deaths))
    following = dict(pairwise([*turns, max(turns[-1], *births) + 1]))
    return all(
        (death < birth or (in_place and death == birth)) and birth <= following[death]
        for death, birth in zip(deaths, births, strict=True)
    )


def _needed(reads: RowReads, turn: Turn) -> tuple[int, int]:
    return reads.needed(turn.first, turn.first + turn.rows)
