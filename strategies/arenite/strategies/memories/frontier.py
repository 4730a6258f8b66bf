"""Which records a memory should hold: the most valuable whose load it has room for.

The records are taken in the order in which they begin. What matters of the choices made so far
is which of the records that are live now were taken, so of all ways to the same set only the best
is kept. Networks have few tensors live at once, so that the sets are few and the result is exact;
beyond a limit the best sets are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arenite.planner import UsageRecord

_MOST_SETS = 2_000

_Value: TypeAlias = tuple[float, int]  # cost saved, then bytes, of all chosen records


@dataclass(frozen=True, slots=True)
class Choice:
    """Records that a memory should hold.

    Attributes:
        taken: For each record, whether it is taken.
        saving: Sum of the savings of the taken records.
        exact: Whether no other choice saves more.
    """

    taken: tuple[bool, ...]
    saving: float
    exact: bool


@dataclass(frozen=True, slots=True)
class _PartialChoice:
    live: int  # the taken that are live, as bits by index
    load: int
    value: _Value
    taken: int  # all, as bits by index


def best_choice(
    records: Sequence[UsageRecord],
    savings: Sequence[float],
    room: int | None,
    room_elsewhere: int | None,
    pinned: Mapping[int, bool],
    most_sets: int = _MOST_SETS,
) -> Choice | None:
    """Return the records to hold; None if there is no room for the rest elsewhere.

    Args:
        savings: Saving of each record if it is taken.
        room: Bytes that may be live in the memory at once; None for any number.
        room_elsewhere: Bytes of the others that may be live at once; None for any number.
        pinned: Indices of records that must be taken, or must not.
        most_sets: Sets of live records that are kept at most.

    Cost: records times sets; the sets are at most 2 to the power of the records live at once.
    """
    order = sorted(range(len(records)), key=lambda index: (records[index].start, index))
    states = [_PartialChoice(0, 0, (0.0, 0), 0)]
    live: list[int] = []
    exact = True
    for index in order:
        record, bit = records[index], 1 << index
        ended = [other for other in live if records[other].end <= record.start]
        live = [other for other in live if records[other].end > record.start]
        states = _without(states, ended, records)
        total = sum(records[other].size for other in live) + record.size
        live.append(index)
        found: dict[int, _PartialChoice] = {}
        for state in states:
            if pinned.get(index, True) and (room is None or state.load + record.size <= room):
                saved, size = state.value
                _keep(
                    found,
                    _PartialChoice(
                        state.live | bit,
                        state.load + record.size,
                        (saved + savings[index], size + record.size),
                        state.taken | bit,
                    ),
                )
            if not pinned.get(index, False) and (
                room_elsewhere is None or total - state.load <= room_elsewhere
            ):
                _keep(found, state)
        states = list(found.values())
        if len(states) > most_sets:
            exact = False
            states = _fittest(states, most_sets)
    if not states:
        return None
    best = max(states, key=lambda state: (state.value, -state.taken))
    taken = tuple(bool(best.taken >> index & 1) for index in range(len(records)))
    return Choice(taken, best.value[0], exact)


def _keep(found: dict[int, _PartialChoice], state: _PartialChoice) -> None:
    known = found.get(state.live)
    if known is None or state.value > known.value:
        found[state.live] = state


def _without(
    states: list[_PartialChoice], ended: Sequence[int], records: Sequence[UsageRecord]
) -> list[_PartialChoice]:
    """Return the states once records have ended."""
    if not ended:
        return states
    mask = sum(1 << index for index in ended)
    found: dict[int, _PartialChoice] = {}
    for state in states:
        gone = sum(records[index].size for index in ended if state.live >> index & 1)
        left = _PartialChoice(state.live & ~mask, state.load - gone, state.value, state.taken)
        _keep(found, left)
    return list(found.values())


def _fittest(states: list[_PartialChoice], most: int) -> list[_PartialChoice]:
    """Return some of the states: half that save most, half that leave least elsewhere."""
    by_value = sorted(states, key=lambda state: state.value, reverse=True)[: most // 2]
    kept = {state.live for state in by_value}
    by_load = sorted(states, key=lambda state: (-state.load, -state.value[0]))
    others = [state for state in by_load if state.live not in kept]
    return [*by_value, *others[: most - len(by_value)]]
