"""Programs in bands that go lower by recomputing some columns and rows.

Bands keep the rows that windows share. Where these are wide, as in a layer that expands channels,
they bind. A region in strips of columns (`arenite.strategies.bands.columns`) keeps rows of the
strip and recomputes columns that two strips share; blocks whose steps run as one
(`arenite.strategies.bands.chains`) keep neither.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeAlias

from arenite.planner import Candidate, Costs, Program, Rules, ShouldStop, Step
from arenite.planner.operators import Strips
from arenite.planner.placement import Placer
from arenite.planner.programs import RowStep, never, steps_by_rows
from arenite.strategies.bands.binding import BandsLimitError
from arenite.strategies.bands.chains import ChainsSearch
from arenite.strategies.bands.regions import LONGEST
from arenite.strategies.bands.repeats import repeat_cheap_steps
from arenite.strategies.bands.search import BandsSearch

_BESIDE_BLOCKS = 4
"""Most steps of a region in strips of columns where blocks run as one: about those of a block."""
_MOST_WORK = 1.75
"""Most multiply-adds, as a multiple of those of the whole program."""


InParts: TypeAlias = Callable[[Program], tuple[Program, Callable[[RowStep], bool]]]


class StripsSearch:
    """Searches programs in bands, with and without strips of columns."""

    def __init__(
        self,
        program: Program,
        rules: Rules,
        costs: Costs,
        place: Placer,
        should_stop: ShouldStop = never,
        is_allowed: Callable[[RowStep], bool] = lambda _: True,
        in_parts: InParts | None = None,
    ) -> None:
        """Find the regions that can run in bands.

        Args are those of `BandsSearch`.

        Args:
            in_parts: Returns a program with some steps in parts that keep fewer bytes, and which
                of its steps may run row by row; the same program if it has no such steps.
        """

        def may_run(each: RowStep) -> bool:
            return isinstance(each.step.operator, Strips) or is_allowed(each)

        self._make = partial(
            BandsSearch, rules=rules, costs=costs, place=place, should_stop=should_stop,
            is_allowed=may_run,
        )  # fmt: skip
        self._plain = self._make(program)
        self._in_parts = in_parts
        self._most_work = _MOST_WORK * self.whole.multiply_adds

    @property
    def whole(self) -> Candidate:
        """The program that runs whole."""
        return self._plain.whole

    def within(self, budget: int) -> Candidate:
        """Return the quickest program whose plan fits a budget.

        It recomputes rows only if no program without recomputation fits.

        Raises:
            BandsLimitError: None fits, or none was found before the search was stopped.
        """
        refusal: BandsLimitError | None = None
        for way in self._ways():
            try:
                return way.within(budget)
            except BandsLimitError as error:
                refusal = error
        assert refusal is not None
        raise refusal

    def above(self, room: int, byte_s: float) -> Candidate:
        """Return the result of `BandsSearch.above`, which recomputes no row."""
        return self._plain.above(room, byte_s)

    def frontier(self) -> Iterator[Candidate]:
        """Yield programs of descending height, each slower than the one before."""
        yield self.whole
        for way in self._ways():
            yield from islice(way.frontier(), 1, None)

    def _ways(self) -> Iterator[BandsSearch | ChainsSearch]:
        """Yield the searches in which less and less is kept, as long as they are of use."""
        way = self._plain
        yield way
        for program, allowed in self._repeating():
            way = self._make(program, above=way.lowest, is_allowed=allowed)
            yield way
        way = self._make(
            way.program, above=way.lowest, is_allowed=way.is_allowed, in_strips=LONGEST
        )
        yield way
        if way.lowest is not self.whole:
            above, known = way, dict[int, tuple[Step, RowStep | None]]()

            def search(program: Program) -> BandsSearch:
                return self._make(
                    program,
                    above=above.lowest,
                    is_allowed=above.is_allowed,
                    in_strips=_BESIDE_BLOCKS,
                    known=known,
                )

            chains = ChainsSearch(way, search, self._most_work)
            if chains.is_of_use:
                yield chains

    def _repeating(self) -> Iterator[tuple[Program, Callable[[RowStep], bool]]]:
        """Yield programs that repeat cheap steps, whole or in parts, and what may run by rows."""
        program = self._plain.program
        repeated, copies = repeat_cheap_steps(program)
        if copies:
            yield repeated, _among(self._plain.steps_by_rows, copies)
        if self._in_parts is None:
            return
        parts, allowed = self._in_parts(program)
        if parts is not program:
            names = steps_by_rows(parts, allowed)
            repeated, copies = repeat_cheap_steps(parts)
            yield repeated, _among(names, copies)


def _among(names: Container[str], copies: Mapping[str, str]) -> Callable[[RowStep], bool]:
    """Return whether a step, or the one that it is a copy of, has one of some names."""
    return lambda each: copies.get(each.step.name, each.step.name) in names
