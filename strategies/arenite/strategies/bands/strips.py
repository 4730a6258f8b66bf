"""Run a chain of steps as one, in strips of columns, and turn it back into ordinary steps.

The tensors between the steps of the chain are then narrower, and live for one row of its result at
a time. Overlaps of windows are recomputed, which takes more multiply-adds.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from arenite.planner import Alias, Program, ShouldStop, Step, Tensor, TensorKind
from arenite.planner.operators import (
    Band,
    NarrowLayer,
    Pieces,
    Strip,
    Strips,
    WideLayer,
    in_strips,
)
from arenite.planner.programs import Names, never
from arenite.planner.tensors import has_rows, num_rows, row_bytes
from arenite.strategies.bands.paths import SearchStoppedError


def fuse(program: Program, start: int, stop: int, width: int) -> Program | None:
    """Return the program with some consecutive steps as one in strips, None if they cannot be.

    Args are those of `fused_step`.
    """
    step = fused_step(program, start, stop, width)
    return None if step is None else with_fused(program, {range(start, stop): step})


def fused_step(program: Program, start: int, stop: int, width: int) -> Step | None:
    """Return some consecutive steps as one in strips, None if they cannot be.

    Args:
        program: The program, none of its storage shared yet.
        start: Index of the first step.
        stop: Index after the last.
        width: Columns of a strip of the last step's result.
    """
    steps = program.steps[start:stop]
    if not _is_chain(program, steps):
        return None
    layers = [WideLayer(step.name, step.operator, program.operands(step)) for step in steps]
    operator = in_strips(layers, width)
    if operator is None:
        return None
    constants = dict.fromkeys(name for step in steps for name in step.inputs[1:] if name)
    return Step(steps[-1].name, operator, (steps[0].inputs[0], *constants), steps[-1].outputs)


def with_fused(program: Program, chains: Mapping[range, Step]) -> Program:
    """Return the program with a step in the place of each of some ranges of steps.

    Args:
        chains: By the range that it takes the place of, what `fused_step` made of its steps.
    """
    starts = {steps.start: step for steps, step in chains.items()}
    inside = {index for steps in chains for index in steps}
    between = {program.steps[index].outputs[0] for steps in chains for index in steps[:-1]}
    found = (
        starts.get(index, step)
        for index, step in enumerate(program.steps)
        if index in starts or index not in inside
    )
    return replace(
        program,
        tensors={name: each for name, each in program.tensors.items() if name not in between},
        steps=tuple(found),
    )


def _is_chain(program: Program, steps: Sequence[Step]) -> bool:
    """Tell whether each step reads one image, and only the next step reads its result."""
    readers = Counter(
        [*program.output_tensors, *(n for step in program.steps for n in step.reads)]
    )
    viewed = {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    for index, step in enumerate(steps):
        operands = program.operands(step)
        source, result, *others = operands.source, operands.result, *operands.inputs[1:]
        if source is None or result is None or len(step.writes) != 1:
            return False
        if source.kind is TensorKind.CONSTANT or not (has_rows(source) and has_rows(result)):
            return False
        if any(each is not None and each.kind is not TensorKind.CONSTANT for each in others):
            return False
        if index < len(steps) - 1:
            is_plain = result.kind is TensorKind.ACTIVATION and result.alias is None
            is_read_once = steps[index + 1].inputs[0] == result.name and readers[result.name] == 1
            if not is_plain or not is_read_once or result.name in viewed:
                return False
    return True


def unfold(program: Program, should_stop: ShouldStop = never) -> Program:
    """Return the program with its steps in strips as ordinary steps.

    Cost: O(rows of the results x layers of all strips).
    """
    if not any(isinstance(_whole_operator(step), Strips) for step in program.steps):
        return program
    tensors = dict(program.tensors)
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    labels = _Labels(names)
    steps: list[Step] = []
    for step in program.steps:
        operator = _whole_operator(step)
        if isinstance(operator, Strips):
            if should_stop():
                raise SearchStoppedError
            steps += _StripSteps(operator, step, tensors, labels).steps()
        else:
            steps.append(step)
    return replace(program, tensors=tensors, steps=tuple(steps))


def _whole_operator(step: Step) -> object:
    return step.operator.operator if isinstance(step.operator, Band) else step.operator


class _Labels:
    """Unique names of tensors and steps in strips, the same at every turn.

    A step may have the name of a tensor.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self._known: dict[tuple[str, str], str] = {}

    def of(self, name: str, chain: str) -> str:
        """Return the name of a strip in the chain that makes a tensor."""
        if (name, chain) not in self._known:
            self._known[name, chain] = self.names.take(name)
        return self._known[name, chain]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A tensor as pieces of some rows each."""

    firsts: Sequence[int]
    pieces: Sequence[Tensor]

    def place(self, row: int, column: int) -> Alias:
        """Return where an element lies."""
        index = bisect_right(self.firsts, row) - 1
        piece = self.pieces[index]
        offset = (row - self.firsts[index]) * row_bytes(piece)
        return Alias(piece.name, offset + column * row_bytes(piece) // piece.shape[2])


class _StripSteps:
    """The steps of one turn; it adds their tensors to the program's."""

    def __init__(
        self, operator: Strips, step: Step, tensors: dict[str, Tensor], labels: _Labels
    ) -> None:
        self._strips = operator
        self._tensors = tensors
        self._labels = labels
        self._names = labels.names
        self._chain = operator.layers[-1].name
        self._firsts = {
            strip.rows: tuple(accumulate(map(len, strip.taken), initial=0))
            for strip in operator.strips
        }
        band = step.operator
        if isinstance(band, Band):
            self._rows = range(band.first, band.first + band.rows)
            self._source = self._pieces(band.inputs[0], step.inputs)
            self._result = self._pieces(band.outputs[0], step.outputs)
        else:
            self._rows = range(len(operator.blocks))
            self._source = self._pieces(None, step.inputs)
            self._result = self._pieces(None, step.outputs)

    def _pieces(self, pieces: Pieces | None, names: Sequence[str]) -> _Rows:
        firsts = pieces.firsts if pieces is not None and pieces.firsts else (0,)
        return _Rows(firsts, [self._tensors[name] for name in names[: len(firsts)]])

    def steps(self) -> Iterator[Step]:
        """Yield the steps, row by row, strip by strip."""
        for row in self._rows:
            for strip in self._strips.strips:
                if row in strip.rows:
                    yield from self._layers(row - strip.rows.start, row, strip)

    def _layers(self, index: int, row: int, strip: Strip) -> Iterator[Step]:
        read = strip.layers[0].source
        sources = [
            (first, self._part(read, self._source.place(taken, strip.read_from)))
            for first, taken in enumerate(strip.taken[index], self._firsts[strip.rows][index])
        ]
        for layer, narrow in zip(self._strips.layers, strip.layers, strict=True):
            rows = range(narrow.firsts[index], narrow.firsts[index + 1])
            if narrow is strip.layers[-1]:
                made = [self._part(narrow.result, self._result.place(row, strip.first))]
            else:
                made = [self._between(narrow.result) for _ in rows]
            yield self._step(layer, narrow, rows, sources, made)
            sources = list(zip(rows, made, strict=True))

    def _part(self, image: Tensor, alias: Alias) -> str:
        """Return a row of an image that lies in a wider one."""
        name = self._names.take(f"{image.name}/row")
        shape = (1, 1, *image.shape[2:])
        self._tensors[name] = replace(image, name=name, shape=shape, alias=alias)
        return name

    def _between(self, image: Tensor) -> str:
        """Return a row of an image, with a storage of its own."""
        name = self._names.take(f"{image.name}/row")
        self._tensors[name] = replace(image, name=name, shape=(1, 1, *image.shape[2:]))
        return name

    def _label(self, image: Tensor) -> str:
        return self._labels.of(image.name, self._chain)

    def _step(
        self,
        layer: WideLayer,
        narrow: NarrowLayer,
        rows: range,
        sources: Sequence[tuple[int, str]],
        made: Sequence[str],
    ) -> Step:
        first, count = rows.start, len(rows)
        source, result = layer.operands.source, layer.operands.result
        assert source is not None
        assert result is not None
        constants = [None if each is None else each.name for each in layer.operands.inputs[1:]]
        read = tuple(row for row, _ in sources)
        operands = (
            Pieces(self._label(narrow.source), narrow.source.shape, read, source.name),
            *(Pieces(name, self._tensors[name].shape) if name else None for name in constants),
        )
        band = Band(
            narrow.operator,
            self._labels.of(narrow.name, self._chain),
            first,
            count,
            operands,
            (Pieces(self._label(narrow.result), narrow.result.shape, tuple(rows), result.name),),
            work=narrow.operator.multiply_adds(narrow.operands) * count // num_rows(narrow.result),
            wider=layer.name,
            working_memory=narrow.operator.row_scratch(narrow.operands),
        )
        inputs = (*(name for _, name in sources), *(name or "" for name in constants))
        label = f"{narrow.name}/rows {first}" + f" to {first + count}" * (count > 1)
        return Step(self._names.take(label), band, inputs, tuple(made))
