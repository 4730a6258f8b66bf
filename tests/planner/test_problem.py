import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import ModelError
from arenite.planner.placement.problem import (
    LoadSpan,
    PermittedOverlap,
    Problem,
    UsageRecord,
    load_spans,
)
from arenite.planner.tensors import Memory
from support.brute_force import lowest_height
from support.problems import problems, problems_in_memories


@pytest.mark.parametrize(
    "fields",
    [{"size": 0}, {"start": -1}, {"start": 2}, {"end": 0}, {"alignment": 0}, {"alignment": 3},
     {"alignment": 4, "offset": 2}, {"offset": -4}],
)  # fmt: skip
def test_a_broken_record_is_refused(fields):
    with pytest.raises(ModelError, match="record 'a'"):
        UsageRecord(**({"name": "a", "size": 4, "start": 0, "end": 2} | fields))


def test_two_records_of_one_name_are_refused():
    record = UsageRecord("a", 4, 0, 2)
    with pytest.raises(ModelError, match="two records are named 'a'"):
        Problem((record, record))


@given(*[st.integers(0, 6)] * 2, *[st.integers(1, 4)] * 2)
def test_records_meet_exactly_when_some_step_is_in_both(a, b, a_lifetime, b_lifetime):
    one, other = UsageRecord("a", 1, a, a + a_lifetime), UsageRecord("b", 1, b, b + b_lifetime)
    common = set(range(a, a + a_lifetime)) & set(range(b, b + b_lifetime))
    assert one.meets(other) == other.meets(one) == bool(common)


def test_spans_leave_out_steps_at_which_nothing_lives():
    records = [UsageRecord("a", 4, 0, 2), UsageRecord("b", 8, 1, 3), UsageRecord("c", 2, 5, 6)]
    assert list(load_spans(records)) == [
        LoadSpan(0, 1, 4, 4),
        LoadSpan(1, 2, 12, 12),
        LoadSpan(2, 3, 8, 8),
        LoadSpan(5, 6, 2, 2),
    ]


@given(problems())
def test_the_load_is_the_sum_of_what_lives_at_each_step(problem):
    painted = dict.fromkeys(range(problem.num_steps), 0)
    for record in problem.records:
        for step in range(record.start, record.end):
            painted[step] += record.size
    spanned = dict.fromkeys(range(problem.num_steps), 0)
    for span in load_spans(problem.records):
        for step in range(span.start, span.end):
            spanned[step] = span.load
    assert spanned == painted


def test_the_bound_counts_gaps_that_alignment_forces():
    records = tuple(UsageRecord(f"r{i}", size, 0, 1, 16) for i, size in enumerate((10, 20, 5)))
    # What lies on top needs no rounding, so the 20 B go there: 16 + 16 + 20.
    assert Problem(records).lower_bound == 52
    heights = []
    for order in itertools.permutations(records):
        top = 0
        for record in order:
            top = -(-top // 16) * 16 + record.size
        heights.append(top)
    assert min(heights) == 52


@given(problems(max_records=5))
def test_the_bound_is_never_above_the_lowest_plan_whatever_the_alignments(problem):
    load = max((span.load for span in load_spans(problem.records)), default=0)
    assert load <= problem.lower_bound <= lowest_height(problem)


@given(problems())
def test_the_bound_is_the_largest_load_where_sizes_are_multiples(problem):
    records = tuple(
        UsageRecord(r.name, r.size * r.alignment, r.start, r.end, r.alignment)
        for r in problem.records
    )
    spans = list(load_spans(records))
    assert Problem(records).lower_bound == max((span.load for span in spans), default=0)


def test_an_empty_problem_needs_nothing():
    assert (Problem(()).naive, Problem(()).lower_bound, Problem(()).num_steps) == (0, 0, 0)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": ""}, "no name"),
        ({"capacity": -1}, "'m': capacity -1 B is below 0"),
        ({"alignment": 0}, "'m': alignment 0 is not a power of two"),
        ({"alignment": 24}, "'m': alignment 24 is not a power of two"),
    ],
)
def test_a_broken_memory_is_refused(fields, reason):
    with pytest.raises(ModelError, match=reason):
        Memory(**({"name": "m"} | fields))


SRAM, DRAM = Memory("sram", 64, 8), Memory("dram")
IN_SRAM = UsageRecord("a", 24, 0, 2, 8, memory="sram")
IN_DRAM = UsageRecord("b", 100, 0, 2, memory="dram")


@pytest.mark.parametrize(
    ("records", "memories", "reason"),
    [
        ((), (), "at least one"),
        ((), (SRAM, DRAM, SRAM), "each of its own name"),
        ((IN_DRAM,), (SRAM,), "'b' lies in memory 'dram', one of 'sram' expected"),
        ((replace(IN_SRAM, alignment=4),), (SRAM,), "'a' is aligned to 4, memory 'sram' to 8"),
        (
            (replace(IN_SRAM, start=1, overlaps=(PermittedOverlap("b", 4),)), IN_DRAM),
            (SRAM, DRAM),
            "'b', which lies in memory 'dram', not in 'sram'",
        ),
    ],
)
def test_memories_and_records_that_do_not_fit_are_refused(records, memories, reason):
    with pytest.raises(ModelError, match=reason):
        Problem(records, (), memories)


def test_a_problem_of_one_memory_looks_simple():
    problem = Problem.of([UsageRecord("a", 4, 0, 2)], ("step",), capacity=8)
    assert problem.memories == (Memory("arena", 8),)
    assert problem.records[0].memory == "arena"
    assert (problem.capacity, problem.with_capacity(None).capacity) == (8, None)
    assert problem.by_memory() == (problem,)


def test_each_memory_has_its_own_records_bound_and_capacity():
    problem = Problem((IN_DRAM, IN_SRAM), ("one", "two"), (SRAM, DRAM))
    in_sram, in_dram = problem.by_memory()
    assert (in_sram.records, in_sram.memories, in_sram.steps) == (
        (IN_SRAM,), (SRAM,), ("one", "two"),
    )  # fmt: skip
    assert (in_dram.records, in_dram.capacity) == ((IN_DRAM,), None)
    assert (problem.lower_bounds, problem.lower_bound, problem.naive) == ((24, 100), 124, 124)
    assert problem.capacity is None
    assert Problem((), (), (SRAM, Memory("other", 8))).capacity == 72
    assert problem.with_capacity(None).memories == (replace(SRAM, capacity=None), DRAM)
    with pytest.raises(ValueError, match="2 memories"):
        problem.with_capacity(8)


@given(problems_in_memories())
def test_the_bounds_are_those_of_the_memories_by_themselves(problem):
    parts = problem.by_memory()
    assert problem.lower_bounds == tuple(part.lower_bound for part in parts)
    assert problem.naive == sum(part.naive for part in parts)
    assert sum(len(part.records) for part in parts) == len(problem.records)


def test_the_bounds_of_a_problem_are_found_once() -> None:
    problem = Problem((UsageRecord("a", 8, 0, 2), UsageRecord("b", 4, 1, 3)))
    assert problem.lower_bounds is problem.lower_bounds
    assert replace(problem, records=problem.records[:1]).lower_bound == 8
