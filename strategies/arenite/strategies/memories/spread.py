"""Records spread over several memories, so that reading and writing them costs least.

Memory by memory, the cheapest first: its records are chosen exactly by loads, then placed; records
whose offsets do not fit make way for others that do. The rest goes to the next memory. If the rest
finds no room, another choice is tried.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from arenite.planner import Memory, Plan, Problem, UsageRecord
from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.placement import Placer
from arenite.planner.programs import CostedMemory, Traffic, assigned, cost_of, in_memory
from arenite.strategies.base.gap_search import lowest_gap
from arenite.strategies.memories.frontier import best_choice

_MOST_CHOICES = 4
_Offsets: TypeAlias = dict[int, int]  # by index of the record


@dataclass(frozen=True, slots=True)
class Spread:
    """Records in several memories.

    Attributes:
        problem: The records, each in its memory.
        plan: Where they lie there.
        cost: The cost of their reads and writes.
        least_cost: A lower bound of the cost of any assignment.
    """

    problem: Problem
    plan: Plan
    cost: float
    least_cost: float


@dataclass(frozen=True, slots=True)
class Unit:
    """A record, or several that lie in one memory.

    Attributes:
        members: Their indices, ascending.
        record: A record of their largest load, live as long as one of them lives.
        is_loose: Whether they take less than that at some step.
    """

    members: tuple[int, ...]
    record: UsageRecord
    is_loose: bool


def spread(
    problem: Problem,
    memories: Sequence[CostedMemory],
    traffic: Sequence[Traffic],
    place: Placer,
    pinned: Mapping[str, str] | None = None,
    together: Iterable[Collection[str]] = (),
) -> Spread:
    """Return the records in memories such that their traffic costs little.

    Args:
        problem: The records; the memories that they are in do not matter.
        memories: The memories; of equally cheap ones the earlier is preferred.
        traffic: Bytes of each record that are read and written.
        place: Places the records of one memory.
        pinned: Names of records with the names of the memories that they must lie in.
        together: Names of records of which all lie in one memory, in groups that may overlap.

    Raises:
        InfeasibleError: Proved: the memories are too small.
        SearchLimitError: No assignment was found; one may exist.

    Cost: a handful of placements for each memory, and as many again for each choice that is
        taken back.
    """
    _check_room(problem.records, memories)
    units = units_of(problem.records, together)
    search = _SpreadSearch(problem.records, traffic, place, pinned or {}, units)
    ranked = sorted(memories, key=lambda each: each.read + each.write)
    found = search.fill(units, ranked)
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
    """Return unless a record exceeds every memory, or a load exceeds all together."""
    capacities = [each.memory.capacity for each in memories if each.memory.capacity is not None]
    if len(capacities) < len(memories):
        return
    room = max(memories, key=lambda each: each.memory.capacity or 0).memory
    largest = max((record.size for record in records), default=0)
    bound = Problem.of(records).lower_bound
    if largest > max(capacities):
        least = bound if len(memories) == 1 else largest
        raise InfeasibleError(max(capacities), least, room.name)
    if bound > sum(capacities):
        raise InfeasibleError(sum(capacities), bound)


class _SpreadSearch:
    """The choices for one memory after the other."""

    def __init__(
        self,
        records: Sequence[UsageRecord],
        traffic: Sequence[Traffic],
        place: Placer,
        pinned: Mapping[str, str],
        units: Sequence[Unit],
    ) -> None:
        self._records = records
        self._traffic = traffic
        self._place = place
        self._pinned = pinned
        self._units = units
        self._makers: dict[str, None] = {}
        self.least_cost = 0.0

    @property
    def maker(self) -> str:
        return " + ".join(self._makers)

    def fill(
        self, units: Sequence[Unit], memories: Sequence[CostedMemory]
    ) -> dict[str, _Offsets] | None:
        """Return where records lie in the first of the memories and in those after it."""
        here, *others = memories
        if not others:
            offsets = self._all(units, here.memory)
            return None if offsets is None else {here.memory.name: offsets}
        for offsets in self._choices(units, here, others):
            rest = [unit for unit in units if unit.members[0] not in offsets]
            below = self.fill(rest, others)
            if below is not None:
                return {here.memory.name: offsets, **below}
        return None

    def _pins(self, unit: Unit) -> set[str]:
        names = (self._records[index].name for index in unit.members)
        return {self._pinned[name] for name in names if name in self._pinned}

    def _choices(
        self, units: Sequence[Unit], here: CostedMemory, others: Sequence[CostedMemory]
    ) -> Iterator[_Offsets]:
        """Yield choices of records for a memory, the one that saves most first."""
        memory = here.memory
        savings = [self._cost_in(unit, others[0]) - self._cost_in(unit, here) for unit in units]
        has_outlines = any(unit.is_loose for unit in units)
        # Choices use whole rectangles, so free bytes of outlines must not rule one out.
        elsewhere = None if has_outlines else _room(each.memory for each in others)
        if has_outlines and min(savings) >= 0:
            everything = self._all(units, memory)
            if everything is not None:
                yield everything
                return
        pins = [self._pins(unit) for unit in units]
        room = memory.capacity
        seen: set[frozenset[int]] = set()
        for _ in range(_MOST_CHOICES):
            choice = best_choice(
                [unit.record for unit in units],
                savings,
                room,
                elsewhere,
                {position: memory.name in names for position, names in enumerate(pins) if names},
            )
            if choice is None:
                return
            if units is self._units and not seen and choice.exact and len(others) == 1:
                self._prove(choice.saving, others[0])
            wanted = [unit for unit, taken in zip(units, choice.taken, strict=True) if taken]
            offsets = self._placed(wanted, memory)
            excess = sum(len(unit.members) for unit in wanted) - len(offsets)
            self._fill_gaps(offsets, units, savings, memory)
            holds_pinned = all(
                unit.members[0] in offsets
                for unit, names in zip(units, pins, strict=True)
                if memory.name in names
            )
            if holds_pinned and frozenset(offsets) not in seen:
                seen.add(frozenset(offsets))
                yield offsets
            if not excess or room is None:
                return
            room -= max(room // 32, 1)

    def _cost_in(self, unit: Unit, memory: CostedMemory) -> float:
        return sum(self._traffic[index].cost_in(memory) for index in unit.members)

    def _all(self, units: Sequence[Unit], memory: Memory) -> _Offsets | None:
        """Return where all lie in a memory; None if they may not, or do not fit."""
        if any(self._pins(unit) - {memory.name} for unit in units):
            return None
        indices = [index for unit in units for index in unit.members]
        least = self._problem(indices, memory).lower_bound
        if memory.capacity is not None and least > memory.capacity:
            return None
        offsets = self._placed(units, memory)
        return offsets if len(offsets) == len(indices) else None

    def _prove(self, saving: float, last: CostedMemory) -> None:
        # Loads bound all placements, unless records may overlap.
        if not any(record.overlaps for record in self._records) and not any(
            unit.is_loose for unit in self._units
        ):
            self.least_cost = sum(each.cost_in(last) for each in self._traffic) - saving

    def _placed(self, units: Sequence[Unit], memory: Memory) -> _Offsets:
        """Return where those lie of which all ends within the memory."""
        indices = sorted(index for unit in units for index in unit.members)
        problem = self._problem(indices, memory)
        plan = self._place(problem)
        self._makers.setdefault(plan.strategy)
        within = {
            index: offset
            for index, record, offset in zip(indices, problem.records, plan.offsets, strict=True)
            if memory.capacity is None or offset + record.size <= memory.capacity
        }
        complete = [unit for unit in units if all(index in within for index in unit.members)]
        return {index: within[index] for unit in complete for index in unit.members}

    def _problem(self, indices: Iterable[int], memory: Memory) -> Problem:
        """Return the records in a memory, of any height."""
        found = [self._records[index] for index in indices]
        names = {record.name for record in found}
        records = (in_memory(record, memory, names) for record in found)
        return Problem(tuple(records), (), (replace(memory, capacity=None),))

    def _fill_gaps(
        self, offsets: _Offsets, units: Sequence[Unit], savings: Sequence[float], memory: Memory
    ) -> None:
        """Add records that still fit between the others, first those that save most per byte."""
        if memory.capacity is None:
            return
        left = [
            (-saving / unit.record.size, unit.members)
            for unit, saving in zip(units, savings, strict=True)
            if unit.members[0] not in offsets
            and saving >= 0
            and not self._pins(unit) - {memory.name}
        ]
        for _, members in sorted(left):
            found = dict(offsets)
            for index in members:
                offset = self._gap(index, found, memory)
                if offset is None or offset + self._records[index].size > memory.capacity:
                    break
                found[index] = offset
            else:
                offsets.update(found)

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


def units_of(
    records: Sequence[UsageRecord], together: Iterable[Collection[str]]
) -> tuple[Unit, ...]:
    """Return records as units, by their first members.

    Args:
        together: Names of records of which all lie in one memory; groups that share one are one.

    Cost: O(records log records).
    """
    indices = {record.name: index for index, record in enumerate(records)}
    first = list(range(len(records)))

    def find(index: int) -> int:
        while first[index] != index:
            first[index] = first[first[index]]
            index = first[index]
        return index

    for names in together:
        roots = {find(indices[name]) for name in names}
        for root in roots:
            first[root] = min(roots)
    members: dict[int, list[int]] = {}
    for index in range(len(records)):
        members.setdefault(find(index), []).append(index)
    return tuple(_unit(records, tuple(group)) for group in members.values())


def _unit(records: Sequence[UsageRecord], members: tuple[int, ...]) -> Unit:
    group = [records[index] for index in members]
    if len(group) == 1:
        return Unit(members, group[0], bool(group[0].outline))
    most = Problem.of(replace(record, overlaps=()) for record in group).lower_bound
    start, end = min(each.start for each in group), max(each.end for each in group)
    return Unit(members, UsageRecord(group[0].name, most, start, end), is_loose=True)
