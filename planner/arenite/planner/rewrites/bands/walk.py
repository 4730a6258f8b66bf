"""The order in which the rows of a region are made, and the bytes that are live meanwhile.

The rows of the region's results are asked for one band after the other. Each step makes the rows
that the next one needs, and no row is made twice; a row is dead after its last reader.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from arenite.planner.rewrites.bands.geometry import RowReads, RowStep, row_bytes
from arenite.planner.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Region:
    """Consecutive steps that run in bands.

    Attributes:
        start: Index of the first step.
        stop: Index after the last step.
        rows: Rows that are asked of its results at a time.
        inner_rows: Rows that every other step makes at a time, if as many are needed.
    """

    start: int
    stop: int
    rows: int = 1
    inner_rows: int = 1


class Turn(NamedTuple):
    """Rows of a step's result that are made together.

    Attributes:
        step: Index of the step.
        first: The first of the rows; of the operand's, if the step sums these up.
        rows: Their number; 0 for all of a step that does not run in bands.
    """

    step: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """What of a region's tensors its surroundings need.

    Attributes:
        consumed: Tensors from before the region that nothing needs after it; their rows die one
            after the other.
        kept: Tensors made in the region that something after it reads.
        carried: Bytes that are live throughout and that the region does not change.
    """

    consumed: frozenset[str]
    kept: frozenset[str]
    carried: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A region run in bands.

    Attributes:
        turns: What is made, in order.
        peak: Most bytes that are live at a turn, what is carried included; None if the walk was
            given up because it went above the limit.
    """

    turns: tuple[Turn, ...]
    peak: int | None


def walk(
    region: Region,
    steps: Sequence[RowStep],
    tensors: Mapping[str, Tensor],
    boundary: Boundary,
    limit: int | None = None,
) -> Walk:
    """Return the turns of a region, and how many bytes are live.

    Args:
        region: The steps, and how many rows are made at a time.
        steps: Those of the region, in order.
        tensors: The program's.
        boundary: What the surroundings need.
        limit: Bytes above which the walk is given up; None for no limit.

    Cost: O(turns x operands of a step).
    """
    walker = _Walker(region, steps, tensors, boundary, limit)
    return Walk(tuple(walker.turns), walker.peak) if walker.run() else Walk((), None)


class _Source(NamedTuple):
    """What a step reads: the step that makes it, and whose rows die; -1 for none."""

    reads: RowReads
    maker: int
    dying: int
    reader: int
    may_overwrite: bool


@dataclass(slots=True)
class _Dying:
    """A tensor whose rows die in the region: how far each of its readers no longer needs it."""

    row_bytes: int
    passed: list[int] = field(default_factory=list)
    dead: int = 0


class _Walker:
    def __init__(
        self,
        region: Region,
        steps: Sequence[RowStep],
        tensors: Mapping[str, Tensor],
        boundary: Boundary,
        limit: int | None,
    ) -> None:
        self.turns: list[Turn] = []
        self._region = region
        self._steps = steps
        self._limit = sys.maxsize if limit is None else limit
        self._made = [0] * len(steps)
        self._row_bytes = [0 if step.accumulators else row_bytes(step.result) for step in steps]
        self._dying: list[_Dying] = []
        self._sources = self._find_sources(tensors, boundary)
        self._load = boundary.carried + sum(tensors[name].size for name in boundary.consumed)
        self.peak = self._load

    def _find_sources(
        self, tensors: Mapping[str, Tensor], boundary: Boundary
    ) -> list[list[_Source]]:
        makers = {step.result.name: index for index, step in enumerate(self._steps)}
        numbers: dict[str, int] = {}
        found: list[list[_Source]] = []
        for step in self._steps:
            sources: list[_Source] = []
            for reads in step.reads:
                name, dying, reader = reads.tensor, -1, 0
                if name in boundary.consumed or (name in makers and name not in boundary.kept):
                    if name not in numbers:
                        numbers[name] = len(self._dying)
                        self._dying.append(_Dying(row_bytes(tensors[name])))
                    dying = numbers[name]
                    reader = len(self._dying[dying].passed)
                    self._dying[dying].passed.append(0)
                maker = makers.get(name, -1)
                may_overwrite = maker >= 0 and dying >= 0 and name in step.overwritable
                sources.append(_Source(reads, maker, dying, reader, may_overwrite))
            found.append(sources)
        return found

    def run(self) -> bool:
        """Make all rows; tell whether the load stayed within the limit."""
        read = {source.maker for sources in self._sources for source in sources}
        results = [index for index in range(len(self._steps)) if index not in read]
        while results:
            step = min(results, key=lambda index: self._made[index] / self._steps[index].num_rows)
            num_rows = self._steps[step].num_rows
            if not self._pull(step, min(num_rows, self._made[step] + self._region.rows)):
                return False
            if self._made[step] == num_rows:
                results.remove(step)
        return True

    def _pull(self, step: int, stop: int) -> bool:
        """Make the rows of a step up to `stop`, after those that they depend on."""
        made, sources = self._made, self._sources[step]
        if self._steps[step].accumulators:
            stop = self._steps[step].num_rows  # there is no result before the last row
        while made[step] < stop:
            end = min(stop, made[step] + self._region.inner_rows)
            for source in sources:
                if source.maker >= 0:
                    needed = source.reads.stop[end - 1]
                    if made[source.maker] < needed and not self._pull(source.maker, needed):
                        return False
            if not self._make(step, end):
                return False
        return True

    def _make(self, step: int, end: int) -> bool:
        first = self._made[step]
        this = self._steps[step]
        self.turns.append(Turn(self._region.start + step, first, end - first))
        self._made[step] = end
        grown = (end - first) * self._row_bytes[step]
        if this.accumulators:
            grown += this.accumulators if first == 0 else 0
            grown += this.result.size if end == this.num_rows else 0
        freed, replaced = 0, 0
        for source in self._sources[step]:
            if source.dying < 0:
                continue
            dying = self._dying[source.dying]
            dying.passed[source.reader] = source.reads.still_needed(end)
            dead = min(dying.passed)
            if dead > dying.dead:
                if source.may_overwrite and dying.dead <= first and dead >= end:
                    replaced = max(replaced, grown)
                freed += (dead - dying.dead) * dying.row_bytes
                dying.dead = dead
        highest = self._load + grown - replaced
        self.peak = max(self.peak, highest)
        if highest > self._limit:
            return False
        if this.accumulators and end == this.num_rows:
            freed += this.accumulators
        self._load += grown - freed
        return True
