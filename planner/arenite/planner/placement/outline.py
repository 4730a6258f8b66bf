"""Outlines of stairs: rectangles of bytes and steps that move together.

A contiguous tensor whose rows come and go at different steps does not fill its rectangle::

    bytes
      ^   |~~~~~~~~~~~~~|        the last row is read last
      |   |~~~~~~~~~|
      |   |~~~~~|  . . . .       the rest is free for others
      +----------------> steps
"""

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from arenite.planner.errors import ModelError


@dataclass(frozen=True, slots=True)
class Stair:
    """A rectangle of a record's outline.

    Attributes:
        offset: First byte, from the record's first.
        size: Bytes, at least 1.
        start: First step at which the bytes are in use.
        end: First step at which they no longer are, above `start`.
    """

    offset: int
    size: int
    start: int
    end: int


def check_outline(name: str, outline: Sequence[Stair], size: int, start: int, end: int) -> None:
    """Check that the stairs of a record lie in its rectangle and share nothing.

    Raises:
        ModelError: A stair is empty or reaches outside, or two share bytes at a step.

    Cost: O(n log n).
    """
    for stair in outline:
        if stair.size < 1 or stair.start >= stair.end:
            raise ModelError(f"record {name!r}: a stair of its outline is empty, {_shown(stair)}")
        inside = stair.offset >= 0 and stair.offset + stair.size <= size
        if not (inside and start <= stair.start and stair.end <= end):
            raise ModelError(
                f"record {name!r}: a stair of its outline, {_shown(stair)}, is not inside its "
                f"{size} B in steps [{start}, {end})"
            )
    _check_apart(name, outline)


def _check_apart(name: str, outline: Sequence[Stair]) -> None:
    """Check that no two stairs share a byte at a step; those live at once lie side by side."""
    live: list[tuple[int, Stair]] = []
    dying: list[tuple[int, int]] = []
    for stair in sorted(outline, key=lambda each: each.start):
        while dying and dying[0][0] <= stair.start:
            _, dead = heapq.heappop(dying)
            del live[bisect_left(live, dead, key=_offset)]
        place = bisect_left(live, stair.offset, key=_offset)
        for low, other in live[max(0, place - 1) : place + 1]:
            if low < stair.offset + stair.size and stair.offset < low + other.size:
                raise ModelError(
                    f"record {name!r}: two stairs of its outline share bytes at step "
                    f"{stair.start}, {_shown(other)} and {_shown(stair)}"
                )
        live.insert(place, (stair.offset, stair))
        heapq.heappush(dying, (stair.end, stair.offset))


def _offset(item: tuple[int, Stair]) -> int:
    return item[0]


def _shown(stair: Stair) -> str:
    first = stair.offset
    return f"bytes {first} to {first + stair.size} in steps [{stair.start}, {stair.end})"
