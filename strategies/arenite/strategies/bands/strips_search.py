"""Programs in bands that go lower by recomputing some columns and rows.

Bands keep the rows that windows share. Where these are wide, as in a layer that expands channels,
they bind. A region in strips of columns (`arenite.strategies.bands.columns`) keeps rows of the
strip and recomputes columns that two strips share; blocks whose steps run as one
(`arenite.strategies.bands.chains`) keep neither.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import TypeAlias

from arenite.planner import Candidate, Costs, Program, Rules, ShouldStop, Step
from arenite.planner.operators import Strips
from arenite.planner.placement import Placer
from arenite.planner.programs import RowStep, never, steps_by_rows
from arenite.strategies.bands.binding import BandsLimitError, binding_of
from arenite.strategies.bands.chains import ChainsSearch
from arenite.strategies.bands.regions import LONGEST
from arenite.strategies.bands.repeats import repeat_cheap_steps
from arenite.strategies.bands.search import BandsSearch, descending
from arenite.strategies.bands.strips import fuse

_BESIDE_BLOCKS = 4
"""Most steps of a region in strips of columns where blocks run as one: about those of a block."""
_WIDTH = 8
"""Columns of a strip."""
_LEAST_SHARE = 0.1
"""Share of the largest load that a tensor must take to be tried in strips."""
_LENGTHS = (3, 2)
"""Numbers of steps that are tried as one: an expansion, its window, and the projection."""
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
        """Yield programs of descending height."""
        lower = chain.from_iterable(islice(way.frontier(), 1, None) for way in self._ways())
        yield from descending(chain([self.whole], lower))

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
        apart = way
        narrower = None if way.lowest is self.whole else self._narrower(way)
        while narrower is not None:
            yield narrower
            way = narrower
            is_of_use = narrower.lowest is not narrower.whole
            narrower = self._narrower(narrower) if is_of_use else None
        if apart.lowest is not self.whole:
            known = dict[int, tuple[Step, RowStep | None]]()

            def search(program: Program) -> BandsSearch:
                return self._make(
                    program,
                    above=apart.lowest,
                    is_allowed=apart.is_allowed,
                    in_strips=_BESIDE_BLOCKS,
                    known=known,
                )

            chains = ChainsSearch(apart, search, self._most_work)
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

    def _narrower(self, way: BandsSearch) -> BandsSearch | None:
        """Return the search with the binding step in strips; None if that is no use."""
        binding = binding_of(way.lowest)
        if binding is None:
            return None
        makers = {step.outputs[0]: index for index, step in enumerate(way.program.steps)}
        for held in binding.held:
            if held.tensor in makers and held.size >= _LEAST_SHARE * binding.load:
                fused = self._in_strips(way, makers[held.tensor])
                if fused is not None:
                    return self._make(
                        fused, above=way.lowest, is_allowed=way.is_allowed, in_strips=LONGEST
                    )
        return None

    def _in_strips(self, way: BandsSearch, start: int) -> Program | None:
        """Return the program with a step and those after it as one, None if that cannot be."""
        for length in _LENGTHS:
            steps = range(start, min(start + length, len(way.program.steps)))
            if way.can_run_by_rows(steps):
                fused = fuse(way.program, steps.start, steps.stop, _WIDTH)
                if fused is not None and _multiply_adds(fused) <= self._most_work:
                    return fused
        return None


def _among(names: Container[str], copies: Mapping[str, str]) -> Callable[[RowStep], bool]:
    """Return whether a step, or the one that it is a copy of, has one of some names."""
    return lambda each: copies.get(each.step.name, each.step.name) in names


def _multiply_adds(program: Program) -> int:
    return sum(step.operator.multiply_adds(program.operands(step)) for step in program.steps)
