"""Turns that come again and again, as loops."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST = 256
"""Turns of the longest loop that is looked for."""


_WIDEST = (1 << 31) - 1
"""Rows by which a turn moves on, at most."""


class Turn(NamedTuple):
    """Rows of a step.

    Attributes:
        step: Index of the step.
        first: The first of the rows.
        rows: Their number; 0 for the whole step.
        stride: By how many rows it moves on each time that its loop comes round.
    """

    step: int
    first: int
    rows: int
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """Turns that run one after another, several times.

    Attributes:
        turns: The turns as they run the first time.
        times: How often they run.
    """

    turns: tuple[Turn, ...]
    times: int


def in_loops(turns: Sequence[Turn]) -> tuple[Loop, ...]:
    """Return turns as loops: at each turn the one that saves most, if one does.

    What does not come again is a loop that runs once.

    Cost: O(turns x places at which the same step makes as many rows, up to a distance).
    """
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        places[turn.step, turn.rows].append(place)
    following = [0] * len(turns)  # index in `places` of the next turn like this one
    for alike in places.values():
        for index, place in enumerate(alike):
            following[place] = index + 1
    found: list[Loop] = []
    once: list[Turn] = []
    place = 0
    while place < len(turns):
        length, times = 1, 1
        alike = places[turns[place].step, turns[place].rows]
        for index in range(following[place], len(alike)):
            period = alike[index] - place
            if period > _LONGEST:
                break
            rounds = _rounds(turns, place, period)
            if (rounds - 1) * period - 1 > (times - 1) * length:
                length, times = period, rounds
        if times == 1:
            once.append(turns[place])
        else:
            if once:
                found.append(Loop(tuple(once), 1))
                once = []
            found.append(_loop(turns[place : place + 2 * length], length, times))
        place += length * times
    return (*found, Loop(tuple(once), 1)) if once else tuple(found)


def _rounds(turns: Sequence[Turn], place: int, period: int) -> int:
    """Return how often some turns run, each moving on by the same number of rows."""
    rounds = 1
    while True:
        end = place + (rounds + 1) * period
        if end > len(turns):
            return rounds
        for each in range(end - period, end):
            now, before = turns[each], turns[each - period]
            if (now.step, now.rows) != (before.step, before.rows):
                return rounds
            stride = now.first - before.first
            if abs(stride) > _WIDEST:
                return rounds
            if rounds > 1 and stride != before.first - turns[each - 2 * period].first:
                return rounds
        rounds += 1


def _loop(twice: Sequence[Turn], length: int, times: int) -> Loop:
    first, second = twice[:length], twice[length:]
    return Loop(
        tuple(
            turn._replace(stride=then.first - turn.first)
            for turn, then in zip(first, second, strict=True)
        ),
        times,
    )


def written_out(loop: Loop) -> Iterator[Turn]:
    """Yield the turns of a loop as they run."""
    for number in range(loop.times):
        for turn in loop.turns:
            yield turn._replace(first=turn.first + number * turn.stride, stride=0)
