"""Regions that can run in bands of rows, the order of their turns, and their surroundings.

The results of a region are made one band after the other. Each step makes the rows that the next
step needs, and no row is made twice; a row dies after its last reader.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from arenite.planner import Costs, Program, ShouldStop, Step, Tensor
from arenite.planner.programs import RowStep, Uses, never, row_step
from arenite.planner.tensors import has_rows, num_rows, row_bytes
from arenite.strategies.bands.columns import COLUMN_AXIS, Columns, Narrowing, NarrowStep
from arenite.strategies.base import native

LONGEST = 48
"""Steps of the longest region that is tried."""
_NO_LIMIT = (1 << 62) - 1
_MOST_WORK = 3
"""Most multiply-adds of a region in strips, as a multiple of those of the region."""


class Region(NamedTuple):
    """Consecutive steps that run in bands.

    Attributes:
        stop: Index after the last step.
        rows: Rows of a band of its results.
        inner_rows: Rows that every other step makes at a time, if as many are needed.
        columns: Columns of the last step's result that are made before the next ones; 0 for all.
    """

    start: int
    stop: int
    rows: int = 1
    inner_rows: int = 1
    columns: int = 0


class Turn(NamedTuple):
    """Rows of a step's result that are made together.

    Attributes:
        first: The first of the rows; of the operand's, if the step sums these up.
    """

    step: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Tensors that a region shares with the steps before and after it.

    Attributes:
        consumed: Tensors from before the region that nothing needs after it; their rows die one
            after the other.
        kept: Tensors made in the region that something after it reads.
        carried: Bytes that are live throughout and that the region does not touch.
    """

    consumed: frozenset[str]
    kept: frozenset[str]
    carried: int


class BandWalk(NamedTuple):
    """A region run in bands.

    Attributes:
        peak: Most bytes that are live at a turn, carried ones included.
        seconds: Estimated time of its turns.
    """

    peak: int
    turns: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Around:
    """The surroundings of a region, also by the indices of the native core."""

    surroundings: Surroundings
    consumed: list[int]
    kept: list[int]


class Regions:
    """The regions of a program and their surroundings."""

    def __init__(
        self,
        program: Program,
        costs: Costs,
        is_allowed: Callable[[RowStep], bool] = lambda _: True,
        outside: Container[str] = (),
        should_stop: ShouldStop = never,
        known: dict[int, tuple[Step, RowStep | None]] | None = None,
    ) -> None:
        """Find which steps can run row by row.

        Args:
            program: The program, none of its storage shared yet.
            is_allowed: Whether a step that could run row by row may.
            outside: Tensors that the caller holds; they take no bytes of the arena.
            should_stop: Asked at each step; from then on no step can run in bands.
            known: By identity, steps of other programs with the same tensors, and how they run
                row by row; those found are added.

        Raises:
            MissingDependencyError: There is no native core.
            SizeLimitError: Its tensors exceed the core's 64 bits.
        """
        native.require("running in bands")
        self.program = program
        known = {} if known is None else known
        for step in program.steps:
            if id(step) not in known:
                known[id(step)] = (step, None if should_stop() else row_step(program, step))
        found = (known[id(step)][1] for step in program.steps)
        self.steps = tuple(
            each if each is not None and is_allowed(each) else None for each in found
        )
        self._costs = costs
        self._outside = outside
        self._narrowing = Narrowing(program, self.steps)
        self._narrowest: dict[tuple[int, int], int] = {}
        self._strips: dict[tuple[int, int, int], list[Columns] | None] = {}
        self._storages = storages(program, outside)
        self._around: dict[int, tuple[_Around, ...]] = {}
        in_rows = [each for each in self.steps if each is not None]
        names = dict.fromkeys(
            name
            for each in in_rows
            for name in (each.result.name, *(reads.tensor for reads in each.reads))
        )
        tensors = [program.tensors[name] for name in names]
        sizes = [(tensor.name, tensor.size) for tensor in tensors]
        sums = [(each.step.name, each.accumulators + each.scratch) for each in in_rows]
        native.check_sizes("tensor", [*sizes, *sums])
        self._index = {name: index for index, name in enumerate(names)}
        self._times = [_times(each, costs) for each in self.steps]
        self._bands = native.core.Bands(
            [0 if tensor.name in outside else tensor.size for tensor in tensors],
            [num_rows(tensor) if has_rows(tensor) else 0 for tensor in tensors],
            [self._for_core(each) for each in self.steps],
            self._times,
        )

    @property
    def by_rows(self) -> frozenset[str]:
        """Names of the steps that can run row by row."""
        return frozenset(each.step.name for each in self.steps if each is not None)

    def stops_after(self, start: int) -> Iterator[int]:
        """Yield the ends of regions that could begin at a step."""
        yield from range(start + 1, start + 1 + len(self._surroundings(start)))

    def walk(self, region: Region, limit: int | None = None) -> BandWalk | None:
        """Return peak and time of a region, None if it goes above a limit.

        Of strips of columns they are estimates: from the first, the second and the last.

        Cost: O(turns x operands of a step).
        """
        if region.columns:
            return self._walk_in_strips(region, _NO_LIMIT if limit is None else limit)
        around = self._surroundings(region.start)[region.stop - region.start - 1]
        found = self._bands.walk(
            *region[:4],
            around.consumed,
            around.kept,
            around.surroundings.carried,
            _NO_LIMIT if limit is None else limit,
        )
        return None if found[0] < 0 else BandWalk(*found)

    def turns(self, region: Region) -> tuple[Turn, ...]:
        """Return the turns of a region, or of each of its strips of columns."""
        return tuple(Turn(*turn) for turn in self._bands.turns(*region[:4]))

    def widths(self, start: int, stop: int) -> Sequence[int]:
        """Return the columns of strips in which steps can run, the most first."""
        last = self.steps[stop - 1]
        around = self._surroundings(start)[stop - start - 1].surroundings
        if last is None or around.kept != {last.result.name}:
            return ()
        if len(last.result.shape) <= COLUMN_AXIS:
            return ()
        columns = last.result.shape[COLUMN_AXIS]
        if columns < 2 or self._narrowing.of(start, stop, (0, columns)) is None:
            return ()
        key, widest = (start, stop), -(-columns // 2)
        if key not in self._narrowest:
            most = _MOST_WORK * sum(each.multiply_adds for each in self.steps[start:stop] if each)
            self._narrowest[key] = (
                bisect_left(
                    range(1, widest + 1),
                    True,
                    key=lambda width: self._work(Region(start, stop, columns=width)) <= most,
                )
                + 1
            )
        return range(widest, self._narrowest[key] - 1, -1)

    def in_strips(self, region: Region) -> list[Sequence[NarrowStep]] | None:
        """Return the steps of each strip of columns; None if one cannot be made apart."""
        columns = self._columns(region)
        return None if columns is None else self._narrow(region, columns)

    def _columns(self, region: Region) -> list[Columns] | None:
        last = self.steps[region.stop - 1]
        assert last is not None
        key = (region.start, region.stop, region.columns)
        if key not in self._strips:
            self._strips[key] = self._narrowing.strips(
                region.start, region.stop, last.result.shape[COLUMN_AXIS], region.columns
            )
        return self._strips[key]

    def _narrow(
        self, region: Region, columns: Sequence[Columns]
    ) -> list[Sequence[NarrowStep]] | None:
        found: list[Sequence[NarrowStep]] = []
        for each in columns:
            narrow = self._narrowing.of(region.start, region.stop, each)
            if narrow is None:
                return None
            found.append(narrow)
        return found

    def fits_between(self, region: Region, limit: int) -> bool:
        """Tell whether the rows between steps in strips alone stay within a limit."""
        return self._walk_between(region, 0, limit) is not None

    def _walk_in_strips(self, region: Region, limit: int) -> BandWalk | None:
        last = self.steps[region.stop - 1]
        assert last is not None
        around = self.surroundings(region)
        held = [*around.consumed, last.result.name]
        sizes = {name: self.program.tensors[name].size for name in held}
        carried = around.carried + sum(
            size for name, size in sizes.items() if name not in self._outside
        )
        return self._walk_between(region, carried, limit) if carried <= limit else None

    def _walk_between(self, region: Region, carried: int, limit: int) -> BandWalk | None:
        found = self._samples(region)
        if found is None:
            return None
        narrow, counts = found
        bands = _narrow_bands(narrow, counts, self._costs)
        count = region.stop - region.start
        peak, turns, seconds = bands.walk(
            0, count, region.rows, region.inner_rows, [], [], carried, limit
        )
        return None if peak < 0 else BandWalk(peak, turns * sum(counts), seconds * sum(counts))

    def _samples(self, region: Region) -> tuple[list[Sequence[NarrowStep]], list[int]] | None:
        """Return the steps of the first, the second and the last strip; None if there are none.

        With them for how many strips each stands.
        """
        columns = self._columns(region)
        if columns is None:
            return None
        picked = sorted({0, min(1, len(columns) - 1), len(columns) - 1})
        narrow = self._narrow(region, [columns[index] for index in picked])
        counts = [1, len(columns) - 2, 1] if len(picked) == 3 else [1] * len(picked)
        return None if narrow is None else (narrow, counts)

    def _work(self, region: Region) -> float:
        """Return the multiply-adds of a region in strips, estimated as its walk is."""
        found = self._samples(region)
        if found is None:
            return math.inf
        return sum(
            count * each.multiply_adds
            for steps, count in zip(*found, strict=True)
            for each in steps
        )

    def surroundings(self, region: Region) -> Surroundings:
        return self._surroundings(region.start)[region.stop - region.start - 1].surroundings

    def seconds(self, step: int) -> float:
        """Return the estimated time of a step that runs whole, 0 if it cannot run in bands."""
        each = self.steps[step]
        if each is None:
            return 0.0
        turn_s, constant_s, touched_s, work_s = self._times[step]
        rows = each.num_rows
        return turn_s + max(work_s * rows, constant_s + touched_s * rows)

    def _surroundings(self, start: int) -> tuple[_Around, ...]:
        found = self._around.get(start)
        if found is None:
            all_from_here = surroundings_from(self.program, self.steps, self._storages, start)
            found = tuple(map(self._indexed, islice(all_from_here, LONGEST)))
            self._around[start] = found
        return found

    def _indexed(self, surroundings: Surroundings) -> _Around:
        index = self._index
        consumed = sorted(index[name] for name in surroundings.consumed)
        return _Around(surroundings, consumed, sorted(index[name] for name in surroundings.kept))

    def _for_core(self, each: RowStep | None) -> "native.core.BandStep":
        if each is None:
            return (-1, 0, 0, 0, [])
        operands = [
            (
                self._index[reads.tensor],
                list(reads.first),
                list(reads.stop),
                reads.tensor in each.overwritable,
            )
            for reads in each.reads
        ]
        index = self._index[each.result.name]
        return (index, each.num_rows, each.accumulators, each.scratch, operands)


def _times(each: RowStep | None, costs: Costs) -> "native.core.BandTimes":
    """Return the seconds of a turn, of its constants, of the bytes of a row, and of its work.

    A turn reads all weights of its step, however few rows it makes.
    """
    if each is None:
        return (0.0, 0.0, 0.0, 0.0)
    touched = 0 if each.accumulators else 2 * row_bytes(each.result)
    speed = costs.speed_of(each.step.operator)
    more_turns_s = (each.turns_a_row - 1) * costs.step_s
    return (
        costs.step_s,
        each.constant_bytes / costs.bytes_per_s,
        touched / costs.bytes_per_s,
        more_turns_s + each.multiply_adds / each.num_rows / speed,
    )


def _narrow_bands(
    strips: Sequence[Sequence[NarrowStep]], counts: Sequence[int], costs: Costs
) -> "native.core.Bands":
    """Return steps in strips for the core, as wide as the widest strip.

    Args:
        strips: The steps of some strips.
        counts: How many strips each stands for.
    """
    index: dict[str, int] = {}
    sizes: list[int] = []
    rows: list[int] = []
    steps: list[native.core.BandStep] = []
    times: list[native.core.BandTimes] = []
    columns_of: dict[str, list[Columns]] = {}
    total = sum(counts)

    def place(tensor: Tensor, size: int) -> int:
        if tensor.name not in index:
            index[tensor.name] = len(sizes)
            sizes.append(size)
            rows.append(num_rows(tensor))
        return index[tensor.name]

    for number, alike in enumerate(zip(*strips, strict=True)):
        first = alike[0]
        row_step = first.row_step
        made = [each.operands.outputs[0] for each in alike]
        is_last = number == len(strips[0]) - 1
        operands = []
        for reads in row_step.reads:
            source = first.operands.inputs[reads.position]
            assert source is not None
            is_whole = columns_of.get(reads.tensor) == [e.read[reads.position] for e in alike]
            may_overwrite = is_whole and reads.tensor in row_step.overwritable
            operands.append((place(source, 0), list(reads.first), list(reads.stop), may_overwrite))
        columns_of[row_step.result.name] = [each.made for each in alike]
        size = 0 if is_last else max(each.size for each in made if each is not None)
        result = place(row_step.result, size)
        scratch = max(each.scratch for each in alike)
        steps.append((result, row_step.num_rows, 0, scratch, operands))
        work = sum(n * each.multiply_adds for n, each in zip(counts, alike, strict=True)) / total
        touched = sum(n * each.size for n, each in zip(counts, made, strict=True) if each) / total
        speed = costs.speed_of(row_step.step.operator)
        times.append((
            costs.step_s,
            row_step.constant_bytes / costs.bytes_per_s,
            2 * touched / row_step.num_rows / costs.bytes_per_s,
            (row_step.turns_a_row - 1) * costs.step_s + work / row_step.num_rows / speed,
        ))  # fmt: skip
    return native.core.Bands(sizes, rows, steps, times)


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes that live from the step that makes them to the last that needs them.

    Attributes:
        start: Index of the first step that writes them; -1 before all steps.
        stop: Index after the last step that needs them; above the number of steps if the
            caller or the next run does.
    """

    size: int
    start: int
    stop: int


def storages(program: Program, outside: Container[str] = ()) -> dict[str, Storage]:
    """Return the storages of the arena, by the tensors that own them."""
    return {
        name: Storage(0 if name in outside else program.tensors[name].size, *lifetime)
        for name, lifetime in Uses.of(program).lifetimes().items()
        if program.tensors[name].size
    }


def surroundings_from(
    program: Program, steps: Sequence[RowStep | None], lives: dict[str, Storage], start: int
) -> Iterator[Surroundings]:
    """Yield the surroundings of the regions that begin at a step, the shortest first.

    Args:
        start: Index of the first step.

    Cost: O(storages), and for each region O(its results that are still needed).
    """
    entering = {root: life.size for root, life in lives.items() if life.start < start < life.stop}
    around = sum(entering.values())
    by_row: dict[str, set[str]] = {}
    whole: set[str] = set()
    made: list[str] = []
    for index in range(start, len(steps)):
        each = steps[index]
        if each is None:
            return
        in_rows = {reads.tensor for reads in each.reads}
        for name in each.step.reads:
            root, _ = program.root(name)
            life = lives.get(root)
            is_plain = root == name and name in in_rows
            if life is not None and life.start >= start and not is_plain:
                return
            if name in in_rows:
                by_row.setdefault(root, set()).add(name)
            else:
                whole.add(root)
        result = each.result.name
        if program.root(result)[0] != result:
            return
        stop = index + 1
        made = [root for root in (*made, result) if root in lives and lives[root].stop > stop]
        consumed = [
            name
            for root, names in by_row.items()
            if root in entering and lives[root].stop <= stop and root not in whole
            for name in names
            if len(names) == 1 and program.tensors[name].size == entering[root]
        ]
        carried = around - sum(program.tensors[name].size for name in consumed)
        yield Surroundings(frozenset(consumed), frozenset(made), carried)
