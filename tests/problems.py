"""Problems for Hypothesis to draw."""

from dataclasses import replace

from hypothesis import strategies as st

from arenite.planner.problem import Problem, UsageRecord

NUM_STEPS = 12


@st.composite
def problems(draw: st.DrawFn, max_records: int = 14) -> Problem:
    """Draw records whose sizes need not be multiples of their alignments."""
    return Problem(
        tuple(_record(draw, index) for index in range(draw(st.integers(0, max_records))))
    )


@st.composite
def problems_with_fixed_offsets(draw: st.DrawFn) -> Problem:
    """Draw records of which some, never in each other's way, have their offset."""
    records = list(draw(problems()).records)
    top = 0
    for index, record in enumerate(records):
        if draw(st.booleans()):
            offset = -(-top // record.alignment) * record.alignment
            offset += record.alignment * draw(st.integers(0, 3))
            records[index] = replace(record, offset=offset)
            top = offset + record.size
    return Problem(tuple(records))


def _record(draw: st.DrawFn, index: int) -> UsageRecord:
    start = draw(st.integers(0, NUM_STEPS - 1))
    return UsageRecord(
        name=f"record {index}",
        size=draw(st.integers(1, 40)),
        start=start,
        end=draw(st.integers(start + 1, NUM_STEPS)),
        alignment=draw(st.sampled_from((1, 1, 4, 16))),
    )
