"""Regions that can run in bands of rows, the order of their turns, and their surroundings.

The results of a region are made one band after the other. Each step makes the rows that the next
step needs, and no row is made twice; a row dies after its last reader.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from arenite.planner import Costs, Program, ShouldStop
from arenite.planner.programs import RowStep, Uses, never, row_step
from arenite.planner.tensors import has_rows, num_rows, row_bytes
from arenite.strategies.base import native

_LONGEST = 48
"""Steps of the longest region that is tried."""
_NO_LIMIT = (1 << 62) - 1


class Region(NamedTuple):
    """Consecutive steps that run in bands.

    Attributes:
        stop: Index after the last step.
        rows: Rows of a band of its results.
        inner_rows: Rows that every other step makes at a time, if as many are needed.
    """

    start: int
    stop: int
    rows: int = 1
    inner_rows: int = 1


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
    ) -> None:
        """Find which steps can run row by row.

        Args:
            program: The program, none of its storage shared yet.
            is_allowed: Whether a step that could run row by row may.
            outside: Tensors that the caller holds; they take no bytes of the arena.
            should_stop: Asked at each step; from then on no step can run in bands.

        Raises:
            MissingDependencyError: There is no native core.
            SizeLimitError: Its tensors exceed the core's 64 bits.
        """
        native.require("running in bands")
        self.program = program
        found = (None if should_stop() else row_step(program, step) for step in program.steps)
        self.steps = tuple(
            each if each is not None and is_allowed(each) else None for each in found
        )
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

        Cost: O(turns x operands of a step).
        """
        around = self._surroundings(region.start)[region.stop - region.start - 1]
        found = self._bands.walk(
            *region,
            around.consumed,
            around.kept,
            around.surroundings.carried,
            _NO_LIMIT if limit is None else limit,
        )
        return None if found[0] < 0 else BandWalk(*found)

    def turns(self, region: Region) -> tuple[Turn, ...]:
        return tuple(Turn(*turn) for turn in self._bands.turns(*region))

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
            found = tuple(map(self._indexed, islice(all_from_here, _LONGEST)))
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
