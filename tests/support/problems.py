"""Problems: written down, drawn by Hypothesis, and cut from a rectangle; a strategy for them."""

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from hypothesis import strategies as st

from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.strategy import StrategyKind
from arenite.planner.tensors import Memory

NUM_STEPS = 12


@st.composite
def problems(draw: st.DrawFn, max_records: int = 14) -> Problem:
    """Draw records whose sizes need not be multiples of their alignments."""
    return Problem(
        tuple(_record(draw, index) for index in range(draw(st.integers(0, max_records))))
    )


@st.composite
def problems_with_fixed_offsets(draw: st.DrawFn, max_records: int = 14) -> Problem:
    """Draw records of which some, never in each other's way, have their offset."""
    records = list(draw(problems(max_records)).records)
    top = 0
    for index, record in enumerate(records):
        if draw(st.booleans()):
            offset = -(-top // record.alignment) * record.alignment
            offset += record.alignment * draw(st.integers(0, 3))
            records[index] = replace(record, offset=offset)
            top = offset + record.size
    return Problem(tuple(records))


@st.composite
def problems_in_memories(draw: st.DrawFn, max_records: int = 14) -> Problem:
    """Draw records that lie in up to three memories."""
    names = ("fast", "slow", "flash")[: draw(st.integers(1, 3))]
    records = draw(problems(max_records)).records
    return Problem(
        tuple(replace(record, memory=draw(st.sampled_from(names))) for record in records),
        memories=tuple(map(Memory, names)),
    )


@st.composite
def problems_with_overlaps(draw: st.DrawFn, max_records: int = 14) -> Problem:
    """Draw records of which some may reach into others that die where they begin."""
    records = list(draw(problems(max_records)).records)
    for index, record in enumerate(records):
        overlaps = []
        for other in records:
            most = min(record.size, other.size) - 1
            if (
                other.end == record.start + 1
                and other is not record
                and most
                and draw(st.booleans())
            ):
                overlaps.append(PermittedOverlap(other.name, draw(st.integers(1, most))))
        records[index] = replace(record, overlaps=tuple(overlaps))
    return Problem(tuple(records))


@st.composite
def problems_with_outlines(
    draw: st.DrawFn, max_records: int = 10, most_bytes: int = 40
) -> Problem:
    """Draw records of which some need only stairs of their rectangle."""
    records = list(draw(problems(max_records)).records)
    for index, record in enumerate(records):
        records[index] = small = replace(record, size=min(record.size, most_bytes))
        if draw(st.booleans()):
            records[index] = replace(small, outline=_outline(draw, small))
    return Problem(tuple(records))


def _outline(draw: st.DrawFn, record: UsageRecord) -> tuple[Stair, ...]:
    cuts = draw(st.sets(st.integers(0, record.size), min_size=2, max_size=6))
    stairs = []
    for first, last in pairwise(sorted(cuts)):
        times = draw(st.sets(st.integers(record.start, record.end), max_size=4))
        for start, end in list(pairwise(sorted(times)))[::2]:
            stairs.append(Stair(first, last - first, start, end))
    return tuple(stairs)


def _record(draw: st.DrawFn, index: int) -> UsageRecord:
    start = draw(st.integers(0, NUM_STEPS - 1))
    return UsageRecord(
        name=f"record {index}",
        size=draw(st.integers(1, 40)),
        start=start,
        end=draw(st.integers(start + 1, NUM_STEPS)),
        alignment=draw(st.sampled_from((1, 1, 4, 16))),
    )


def problem_of(*records: tuple[int, int, int], alignment: int = 1) -> Problem:
    """Return records of (size, start, end), named "a", "b" and so on."""
    return Problem(
        tuple(
            UsageRecord(chr(ord("a") + index), size, start, end, alignment)
            for index, (size, start, end) in enumerate(records)
        )
    )


def tiling(num_records: int, num_steps: int, height: int, seed: int = 0) -> Problem:
    """Return the pieces of a rectangle that was cut again and again, largest piece first.

    They fill the rectangle, so `height` is both the lower bound and the optimum.
    """
    rng = random.Random(seed)
    pieces = [(0, num_steps, height)]
    while len(pieces) < num_records:
        pieces.sort(key=lambda piece: (piece[1] - piece[0]) * piece[2])
        start, end, size = pieces.pop()
        if end - start > 1 and rng.random() < 0.5:
            cut = rng.randint(start + 1, end - 1)
            pieces += [(start, cut, size), (cut, end, size)]
        else:
            low = rng.randint(1, size - 1)
            pieces += [(start, end, low), (start, end, size - low)]
    rng.shuffle(pieces)
    return Problem(
        tuple(
            UsageRecord(f"piece {index}", size, start, end)
            for index, (start, end, size) in enumerate(pieces)
        )
    )


@dataclass(frozen=True)
class StubStrategy:
    """Places any problem at offsets; of a name and a call of its own."""

    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "unknown"
    source: ClassVar[str] = "test"
    quick: ClassVar[bool] = True

    def why_unsupported(self, _problem: Problem) -> str | None:
        return None
