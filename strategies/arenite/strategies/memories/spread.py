"""Records spread over several memories, so that what is read and written most costs least.

Memory by memory, the cheapest first: an exact choice of what it should hold, by loads; that choice
is placed, and what does not fit by its offset makes way for what does. The rest goes to the next
memory. Where the rest finds no room, another choice is tried.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.memory import Memory
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.several_memories import CostedMemory, Traffic, assigned, cost_of, in_memory
from arenite.strategies.gap_search import lowest_gap
from arenite.strategies.memories.frontier import MOST_SETS, best_choice

Place: TypeAlias = Callable[[Problem], Plan]

_MOST_CHOICES = 4
_Offsets: TypeAlias = dict[int, int]  # by index of the record


@dataclass(frozen=True, slots=True)
class Spread:
    """Records in several memories.

    Attributes:
        problem: The records, each in its memory.
        plan: Where they lie there.
        cost: What reading and writing them costs.
        least_cost: What any assignment costs at least, as far as is known.
    """

    problem: Problem
    plan: Plan
    cost: float
    least_cost: float


def spread(
    problem: Problem,
    memories: Sequence[CostedMemory],
    traffic: Sequence[Traffic],
    place: Place,
    pinned: Mapping[str, str] | None = None,
    most_sets: int = MOST_SETS,
) -> Spread:
    """Return the records in memories such that their traffic costs little.

    Args:
        problem: The records; the memories that they are in do not matter.
        memories: The memories; of equally cheap ones the earlier is preferred.
        traffic: What is read and written of each record.
        place: Places the records of one memory.
        pinned: Names of records with the names of the memories that they must lie in.
        most_sets: Sets of live records that a choice for a memory keeps at most.

    Raises:
        InfeasibleError: Proved: the memories are too small.
        SearchLimitError: No assignment was found; one may exist.

    Cost: a handful of placements for each memory, and as many again for each choice that is
        taken back.
    """
    _check_room(problem.records, memories)
    search = _Search(problem.records, traffic, place, pinned or {}, most_sets)
    ranked = sorted(memories, key=lambda each: each.read + each.write)
    found = search.fill(range(len(problem.records)), ranked)
    if found is None:
        sizes = ", ".join(_named(each.memory) for each in memories)
        raise SearchLimitError(
            f"no assignment of {len(problem.records)} records to {sizes} was found, but one may "
            "exist; raise a capacity"
        )
    names = [record.name for record in problem.records]
    memory_of = {names[index]: memory for memory, part in found.items() for index in part}
    kinds = [each.memory for each in memories]
    spread_out = assigned(problem, kinds, memory_of)
    offsets = {index: offset for part in found.values() for index, offset in part.items()}
    plan = Plan.of(spread_out, tuple(offsets[index] for index in range(len(names))), search.maker)
    cost = cost_of(spread_out, memories, traffic)
    return Spread(spread_out, plan, cost, min(cost, search.least_cost))


def _named(memory: Memory) -> str:
    size = "any size" if memory.capacity is None else f"{memory.capacity} B"
    return f"{memory.name!r} of {size}"


def _check_room(records: Sequence[UsageRecord], memories: Sequence[CostedMemory]) -> None:
    """Return unless a record exceeds every memory, or what is live at once exceeds all."""
    capacities = [each.memory.capacity for each in memories if each.memory.capacity is not None]
    if len(capacities) < len(memories):
        return
    room = max(memories, key=lambda each: each.memory.capacity or 0).memory
    largest = max((record.size for record in records), default=0)
    if largest > max(capacities):
        raise InfeasibleError(max(capacities), largest, room.name)
    bound = Problem.of(records).lower_bound
    if bound > sum(capacities):
        raise InfeasibleError(sum(capacities), bound)


class _Search:
    """The choices for one memory after the other.

    Attributes:
        maker: Names of the strategies that placed records.
        least_cost: What any assignment costs at least.
    """

    def __init__(
        self,
        records: Sequence[UsageRecord],
        traffic: Sequence[Traffic],
        place: Place,
        pinned: Mapping[str, str],
        most_sets: int,
    ) -> None:
        self._records = records
        self._traffic = traffic
        self._place = place
        self._pinned = pinned
        self._most_sets = most_sets
        self._makers: dict[str, None] = {}
        self.least_cost = 0.0

    @property
    def maker(self) -> str:
        return " + ".join(self._makers)

    def fill(
        self, indices: Sequence[int], memories: Sequence[CostedMemory]
    ) -> dict[str, _Offsets] | None:
        """Return where records lie in the first of the memories and in those after it."""
        here, *others = memories
        name = here.memory.name
        if not others:
            if any(self._pin(index) not in (None, name) for index in indices):
                return None
            offsets = self._placed(indices, here.memory)
            return {name: offsets} if len(offsets) == len(indices) else None
        for offsets in self._choices(indices, here, others):
            rest = [index for index in indices if index not in offsets]
            below = self.fill(rest, others)
            if below is not None:
                return {name: offsets, **below}
        return None

    def _pin(self, index: int) -> str | None:
        return self._pinned.get(self._records[index].name)

    def _choices(
        self, indices: Sequence[int], here: CostedMemory, others: Sequence[CostedMemory]
    ) -> Iterator[_Offsets]:
        """Yield what may lie in a memory, first what saves most."""
        memory = here.memory
        savings = {
            index: self._traffic[index].cost_in(others[0]) - self._traffic[index].cost_in(here)
            for index in indices
        }
        has_outlines = any(self._records[index].outline for index in indices)
        # Choices go by whole rectangles, so what outlines leave to others must not rule one out.
        elsewhere = None if has_outlines else _room(each.memory for each in others)
        if has_outlines and min(savings.values()) >= 0:
            everything = self._all_by_outlines(indices, memory)
            if everything is not None:
                yield everything
                return
        is_first = len(indices) == len(self._records)
        room = memory.capacity
        seen: set[frozenset[int]] = set()
        for _ in range(_MOST_CHOICES):
            choice = best_choice(
                [self._records[index] for index in indices],
                list(savings.values()),
                room,
                elsewhere,
                {
                    position: self._pin(index) == memory.name
                    for position, index in enumerate(indices)
                    if self._pin(index) is not None
                },
                self._most_sets,
            )
            if choice is None:
                return
            if is_first and not seen and choice.exact and len(others) == 1:
                self._prove(choice.saving, others[0])
            wanted = [index for index, taken in zip(indices, choice.taken, strict=True) if taken]
            offsets = self._placed(wanted, memory)
            excess = len(wanted) - len(offsets)
            self._fill_gaps(offsets, savings, memory)
            holds_pinned = all(
                index in offsets for index in indices if self._pin(index) == memory.name
            )
            if holds_pinned and frozenset(offsets) not in seen:
                seen.add(frozenset(offsets))
                yield offsets
            if not excess or room is None:
                return
            room -= max(room // 32, 1)

    def _all_by_outlines(self, indices: Sequence[int], memory: Memory) -> _Offsets | None:
        """Return where all lie, if they fit by their outlines."""
        if any(self._pin(index) not in (None, memory.name) for index in indices):
            return None
        bound = Problem.of(self._records[index] for index in indices).lower_bound
        if memory.capacity is not None and bound > memory.capacity:
            return None
        offsets = self._placed(indices, memory)
        return offsets if len(offsets) == len(indices) else None

    def _prove(self, saving: float, last: CostedMemory) -> None:
        # Loads bound what placements can do, unless records may lie over one another.
        if not any(record.overlaps or record.outline for record in self._records):
            self.least_cost = sum(each.cost_in(last) for each in self._traffic) - saving

    def _placed(self, indices: Sequence[int], memory: Memory) -> _Offsets:
        """Return where those records lie that end within the memory."""
        names = {self._records[index].name for index in indices}
        records = [in_memory(self._records[index], memory, names) for index in indices]
        plan = self._place(Problem(tuple(records), (), (replace(memory, capacity=None),)))
        self._makers.setdefault(plan.strategy)
        return {
            index: offset
            for index, record, offset in zip(indices, records, plan.offsets, strict=True)
            if memory.capacity is None or offset + record.size <= memory.capacity
        }

    def _fill_gaps(self, offsets: _Offsets, savings: Mapping[int, float], memory: Memory) -> None:
        """Add what still fits between the records that are there, first what saves most a byte."""
        if memory.capacity is None:
            return
        left = [
            index
            for index, saving in savings.items()
            if index not in offsets and saving >= 0 and self._pin(index) in (None, memory.name)
        ]
        left.sort(key=lambda index: (-savings[index] / self._records[index].size, index))
        for index in left:
            offset = self._gap(index, offsets, memory)
            if offset is not None and offset + self._records[index].size <= memory.capacity:
                offsets[index] = offset

    def _gap(self, index: int, offsets: _Offsets, memory: Memory) -> int | None:
        """Return where a record still finds room; None if that is not where it must lie."""
        record = self._records[index]
        taken = sorted(
            (offset, offset + self._records[other].size)
            for other, offset in offsets.items()
            if record.meets(self._records[other])
        )
        alignment = max(record.alignment, memory.alignment)
        if record.offset is None:
            return lowest_gap(taken, record.size, alignment)
        end = record.offset + record.size
        is_free = all(stop <= record.offset or end <= start for start, stop in taken)
        return record.offset if is_free and record.offset % alignment == 0 else None


def _room(memories: Iterator[Memory]) -> int | None:
    """Return the bytes of all memories; None if one has no limit."""
    capacities = [memory.capacity for memory in memories]
    known = [capacity for capacity in capacities if capacity is not None]
    return sum(known) if len(known) == len(capacities) else None
