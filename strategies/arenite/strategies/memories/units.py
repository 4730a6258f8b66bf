"""Records that lie in one memory, whichever that is, as one thing to choose."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from arenite.planner.problem import Problem, UsageRecord


@dataclass(frozen=True, slots=True)
class Unit:
    """A record, or several that lie in one memory.

    Attributes:
        members: Their indices, ascending.
        record: One that takes what they take where that is most, for as long as one of them lives.
        is_loose: Whether they take less than that at some step.
    """

    members: tuple[int, ...]
    record: UsageRecord
    is_loose: bool


def units_of(
    records: Sequence[UsageRecord], together: Iterable[Collection[str]]
) -> tuple[Unit, ...]:
    """Return records as units, by their first members.

    Args:
        records: The records.
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
