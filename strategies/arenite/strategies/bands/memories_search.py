"""Programs in bands over several memories: the one with the least predicted time.

A program that runs whole needs a slow memory, where every byte takes longer to read and write.
A program in bands fits a quick memory and takes more turns. The search spreads programs from whole
to the lowest over the memories, and returns the quickest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arenite.planner import Candidate, Costs, ShouldStop
from arenite.planner.errors import PlanError
from arenite.planner.operators import Band
from arenite.planner.placement import Placer
from arenite.planner.programs import (
    CostedMemory,
    Traffic,
    cost_of,
    excess_of,
    in_memories,
    never,
    traffic_of,
)
from arenite.strategies.bands.binding import BandsLimitError, BindingStep, binding_of
from arenite.strategies.bands.strips_search import StripsSearch
from arenite.strategies.memories.spread import Spread, spread

_LOWEST = 3
"""Programs that are tried in other ways where none fits by the costs."""
_DEAR = 1e6
"""Cost of a byte in a memory that should hold as little as possible."""


@dataclass(frozen=True, slots=True)
class OverMemories:
    """The plan of a candidate over several memories; its time counts slow accesses.

    Attributes:
        spread: Cost of reading and writing.
        whole_s: The same time of the program that runs whole; None if that does not fit.
    """

    spread: Spread
    whole_s: float | None


class MemoriesLimitError(PlanError):
    """No program that was found fits the memories.

    Attributes:
        sizes: For each memory that has a limit the size at which one fits, the others as they are.
        binding: The binding step of the lowest program; None if nothing is live in it.
        is_stopped: Whether the search was stopped before its end.
    """

    def __init__(
        self,
        memories: Sequence[CostedMemory],
        sizes: Mapping[str, int],
        binding: BindingStep | None,
        *,
        is_stopped: bool,
    ) -> None:
        kinds = [each.memory for each in memories]
        given = " and ".join(f"{each.name!r} of {each.capacity:,} B" for each in kinds)
        enough = ", or ".join(f"{name!r} of {size:,} B" for name, size in sizes.items())
        why = "" if binding is None else f": {binding}"
        remedy = "raise --memory or --time-limit" if is_stopped else "raise --memory"
        least = "would suffice" if len(sizes) == 1 else "would suffice beside the others"
        super().__init__(f"no program fits {given}{why}; {enough} {least}; {remedy}")
        self.sizes = dict(sizes)
        self.binding = binding
        self.is_stopped = is_stopped


def quickest_over(
    ways: StripsSearch,
    memories: Sequence[CostedMemory],
    costs: Costs,
    place: Placer,
    should_stop: ShouldStop = never,
) -> Candidate:
    """Return the program that is predicted to be the quickest over memories.

    A byte at a cost of 1 takes the time that the costs of the machine say, one at a cost of 4 four
    times that; the memory of a program that is not spread costs 1.

    Args:
        place: Makes plans of one memory.

    Raises:
        MemoriesLimitError: None of the programs fits.
    """
    search = _MemoriesSearch(memories, costs, place)
    programs: list[Candidate] = []
    for banded in _programs(ways, search):
        programs.append(banded)
        search.consider(banded)
    if search.best is None:
        lowest = sorted(programs, key=lambda each: each.height)[:_LOWEST]
        for banded in lowest:
            search.consider_reluctantly(banded)
        if search.best is None:
            raise MemoriesLimitError(
                memories,
                search.sizes_for(lowest[0]),
                binding_of(lowest[0]),
                is_stopped=should_stop(),
            )
    candidate, found = search.best
    note = OverMemories(found, search.seconds.get(id(ways.whole)))
    return replace(candidate, before=ways.whole, notes=(*candidate.notes, note))


def _programs(ways: StripsSearch, search: "_MemoriesSearch") -> Iterator[Candidate]:
    """Yield programs from whole to one that fits the quickest memory, or to the lowest."""
    yield ways.whole
    quick, *others = search.ranked
    room = quick.memory.capacity
    if room is None or ways.whole.height <= room:
        return
    if others:
        dearer = (others[0].read + others[0].write - quick.read - quick.write) / 2
        yield ways.above(room, max(0.0, dearer) / search.costs.bytes_per_s)
    for banded in ways.frontier():
        yield banded
        if banded.height <= room:
            try:
                yield ways.within(room)
            except BandsLimitError:  # the search was stopped
                return
            return


class _MemoriesSearch:
    """The quickest program so far.

    Attributes:
        ranked: The memories, the cheapest first.
        best: The program and how it is spread.
        seconds: Times of the programs that fit, by identity.
    """

    def __init__(self, memories: Sequence[CostedMemory], costs: Costs, place: Placer) -> None:
        self.ranked = sorted(memories, key=lambda each: each.read + each.write)
        self.costs = costs
        self.best: tuple[Candidate, Spread] | None = None
        self.seconds: dict[int, float] = {}
        self._memories = memories
        self._place = place

    def consider(self, banded: Candidate) -> None:
        """Spread a program by the costs, if it can be quicker than the best."""
        if self.best is None or banded.seconds < self.best[0].seconds:
            found = self._spread(banded, self._memories)
            if found is not None:
                self._keep(banded, found)

    def consider_reluctantly(self, banded: Candidate) -> None:
        """Spread a program that does not fit by the costs; each memory in turn holds least."""
        for last in self._memories:
            found = self._spread(banded, _with_dear(self._memories, last))
            if found is not None:
                self._keep(banded, self._at_cost(found, banded))

    def sizes_for(self, banded: Candidate) -> dict[str, int]:
        """Return for each memory with a limit the size at which a program fits."""
        sizes: dict[str, int] = {}
        for each in self._memories:
            name = each.memory.name
            boundless = replace(each, memory=replace(each.memory, capacity=None))
            found = self._spread(banded, _with_dear(self._memories, each, boundless))
            if found is not None and each.memory.capacity is not None:
                names = [memory.name for memory in found.problem.memories]
                sizes[name] = found.plan.heights[names.index(name)]
        return sizes

    def _spread(self, banded: Candidate, memories: Sequence[CostedMemory]) -> Spread | None:
        problem = banded.problem
        traffic = self._traffic(banded)
        try:
            together = _rows_together(banded)
            return spread(problem, memories, traffic, self._place, together=together)
        except PlanError:
            return None

    def _at_cost(self, found: Spread, banded: Candidate) -> Spread:
        """Return the same at the costs of the memories; how little it could cost is not known."""
        return replace(
            found,
            cost=cost_of(found.problem, self._memories, self._traffic(banded)),
            least_cost=0.0,
        )

    def _keep(self, banded: Candidate, found: Spread) -> None:
        traffic = self._traffic(banded)
        beyond = excess_of(found.problem, self._memories, traffic)
        seconds = banded.seconds + beyond / self.costs.bytes_per_s
        self.seconds[id(banded)] = min(seconds, self.seconds.get(id(banded), seconds))
        if self.best is None or seconds < self.best[0].seconds:
            program = in_memories(banded.program, found.problem)
            spread_out = replace(
                banded, program=program, problem=found.problem, plan=found.plan, seconds=seconds
            )
            self.best = (spread_out, found)

    def _traffic(self, banded: Candidate) -> tuple[Traffic, ...]:
        return traffic_of(banded.problem, banded.program)


def _rows_together(banded: Candidate) -> Iterable[set[str]]:
    """Return the records that hold rows of one tensor: a step finds all of them in one memory."""
    program, problem = banded.program, banded.problem
    record_of = {name: record.name for record in problem.records for name in record.tensors}
    found: dict[str, set[str]] = {}
    for step in program.steps:
        if isinstance(step.operator, Band):
            for name, pieces, _ in step.operator.pieces_by_name(step.inputs, step.outputs):
                if pieces.firsts and name in record_of:
                    found.setdefault(pieces.tensor, set()).add(record_of[name])
    return found.values()


def _with_dear(
    memories: Sequence[CostedMemory], last: CostedMemory, instead: CostedMemory | None = None
) -> list[CostedMemory]:
    """Return the memories, one of them so dear that it holds as little as can be."""
    dear = replace(instead or last, read=_DEAR, write=_DEAR)
    return [dear if each is last else each for each in memories]
