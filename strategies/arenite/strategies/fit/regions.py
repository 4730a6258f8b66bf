"""Which parts of a program could run in bands of rows, and what each of them would need."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from arenite.planner.costs import Costs
from arenite.planner.program import Program
from arenite.planner.rewrites.bands.geometry import RowStep, row_step
from arenite.planner.rewrites.bands.regions import Boundary, Region, Turn
from arenite.planner.rows import has_rows, num_rows, row_bytes
from arenite.strategies import native
from arenite.strategies.fit.surroundings import boundaries, storages

_LONGEST = 48
"""Steps of the longest region that is tried."""
_NO_LIMIT = (1 << 62) - 1


class Walk(NamedTuple):
    """A region run in bands.

    Attributes:
        peak: Most bytes that are live at a turn, what is carried included.
        turns: How many turns it takes.
        seconds: Their estimated time.
    """

    peak: int
    turns: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Around:
    """What surrounds a region, and the same by the core's indices."""

    boundary: Boundary
    consumed: list[int]
    kept: list[int]


class Regions:
    """The regions of a program, with what their surroundings need of them."""

    def __init__(
        self,
        program: Program,
        costs: Costs,
        is_allowed: Callable[[RowStep], bool] = lambda _: True,
        outside: Container[str] = (),
    ) -> None:
        """Find which steps can run row by row.

        Args:
            program: The program, none of its storage shared yet.
            costs: What turns cost.
            is_allowed: Whether a step that could run row by row may.
            outside: Tensors that the caller holds; they take no bytes of the arena.

        Raises:
            MissingDependencyError: There is no native core.
            SizeLimitError: Its tensors exceed the core's 64 bits.
        """
        native.require("running in bands")
        self.program = program
        found = (row_step(program, step) for step in program.steps)
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

    def stops_after(self, start: int) -> Iterator[int]:
        """Yield the ends of regions that could begin at a step."""
        yield from range(start + 1, start + 1 + len(self._surroundings(start)))

    def walk(self, region: Region, limit: int | None = None) -> Walk | None:
        """Return how a region runs, None if it goes above a limit.

        Cost: O(turns x operands of a step).
        """
        around = self._surroundings(region.start)[region.stop - region.start - 1]
        found = self._bands.walk(
            *region,
            around.consumed,
            around.kept,
            around.boundary.carried,
            _NO_LIMIT if limit is None else limit,
        )
        return None if found[0] < 0 else Walk(*found)

    def turns(self, region: Region) -> tuple[Turn, ...]:
        """Return in which order the rows of a region are made."""
        return tuple(Turn(*turn) for turn in self._bands.turns(*region))

    def boundary(self, region: Region) -> Boundary:
        """Return what surrounds a region."""
        return self._surroundings(region.start)[region.stop - region.start - 1].boundary

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
            all_from_here = boundaries(self.program, self.steps, self._storages, start)
            found = tuple(map(self._indexed, islice(all_from_here, _LONGEST)))
            self._around[start] = found
        return found

    def _indexed(self, boundary: Boundary) -> _Around:
        index = self._index
        consumed = sorted(index[name] for name in boundary.consumed)
        return _Around(boundary, consumed, sorted(index[name] for name in boundary.kept))

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
    """Return what a turn takes: besides, for constants, and for a row's bytes and its work.

    A turn reads all of the weights, however few rows it makes.
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
