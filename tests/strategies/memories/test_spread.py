"""Records over several memories: every plan verified, and what it costs."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.planner.programs.memories import CostedMemory, Traffic, traffic_of
from arenite.planner.tensors import Memory
from arenite.strategies import find, spread
from arenite.strategies.memories.spread import units_of

BEST = find("best")
FAST = CostedMemory(Memory("fast", 100), 1, 1)
SLOW = CostedMemory(Memory("slow"), 4, 6)


def spread_out(records, memories=(FAST, SLOW), traffic=None, **more):
    problem = Problem.of(records)
    return spread(problem, memories, traffic or traffic_of(problem, None), BEST, **more)


@st.composite
def record_lists(draw):
    records = []
    for index in range(draw(st.integers(1, 7))):
        start = draw(st.integers(0, 4))
        end = start + draw(st.integers(1, 4))
        records.append(UsageRecord(f"r{index}", draw(st.integers(1, 60)), start, end))
    return records


@given(record_lists())
def test_every_plan_is_right_and_costs_what_it_says(records):
    found = spread_out(records)
    verify(found.problem, found.plan)
    costs = {each.memory.name: each.read + each.write for each in (FAST, SLOW)}
    assert found.cost == sum(
        record.size * costs[record.memory] for record in found.problem.records
    )
    assert found.least_cost <= found.cost


@given(record_lists())
def test_the_least_cost_is_a_bound(records):
    found = spread_out(records)
    for taken in product((False, True), repeat=len(records)):
        here = [record for record, is_here in zip(records, taken, strict=True) if is_here]
        if Problem.of(here).lower_bound <= 100:
            cost = sum(
                record.size * (2 if is_here else 10)
                for record, is_here in zip(records, taken, strict=True)
            )
            assert found.least_cost <= cost


def test_what_is_read_often_lies_in_the_fast_memory():
    records = [UsageRecord("once", 80, 0, 3), UsageRecord("often", 80, 0, 3)]
    found = spread_out(records, traffic=[Traffic(80, 80), Traffic(800, 80)])
    assert [record.memory for record in found.problem.records] == ["slow", "fast"]
    assert found.cost == found.least_cost == 80 * (4 + 6) + 800 + 80


def test_the_first_of_equal_memories_is_filled_first():
    memories = [CostedMemory(Memory("one", 100)), CostedMemory(Memory("two", 100))]
    records = [UsageRecord("a", 60, 0, 2), UsageRecord("b", 40, 0, 2), UsageRecord("c", 30, 0, 2)]
    found = spread_out(records, memories)
    assert found.plan.heights == (100, 30)


def test_three_memories_take_what_the_one_before_has_no_room_for():
    memories = [
        CostedMemory(Memory(name, capacity), cost, cost)
        for name, capacity, cost in [("c", None, 9), ("a", 64, 1), ("b", 64, 2)]
    ]
    records = [UsageRecord(f"r{index}", 60, 0, 1) for index in range(3)]
    found = spread_out(records, memories)
    assert sorted(record.memory for record in found.problem.records) == ["a", "b", "c"]


def test_a_pinned_record_lies_where_it_must():
    records = [UsageRecord("a", 60, 0, 2), UsageRecord("b", 60, 0, 2)]
    found = spread_out(records, pinned={"a": "slow"})
    assert [record.memory for record in found.problem.records] == ["slow", "fast"]


def test_the_room_elsewhere_decides_against_what_is_cheapest():
    # Either fits the fast memory; only one fits what is left of the slow one.
    records = [UsageRecord("large", 90, 0, 2), UsageRecord("small", 30, 0, 2)]
    memories = [FAST, CostedMemory(Memory("slow", 40), 4, 6)]
    found = spread_out(records, memories, traffic=[Traffic(1, 1), Traffic(999, 999)])
    assert [record.memory for record in found.problem.records] == ["fast", "slow"]


def test_overlaps_hold_within_a_memory_alone():
    operand = UsageRecord("operand", 90, 0, 2)
    result = UsageRecord("result", 90, 1, 3, overlaps=(PermittedOverlap("operand", 60),))
    found = spread_out([operand, result])
    assert {record.memory for record in found.problem.records} == {"fast", "slow"}
    assert not any(record.overlaps for record in found.problem.records)
    verify(found.problem, found.plan)


def test_records_take_the_alignment_of_their_memory():
    memories = [CostedMemory(Memory("fast", 100, alignment=32)), SLOW]
    found = spread_out([UsageRecord("a", 10, 0, 1), UsageRecord("b", 10, 0, 1)], memories)
    assert found.plan.offsets == (0, 32) or found.plan.offsets == (32, 0)


def test_one_memory_that_is_too_small_is_told_all_that_is_needed():
    records = [UsageRecord("a", 64, 0, 1), UsageRecord("b", 64, 0, 1)]
    with pytest.raises(InfeasibleError, match=r"1 B in memory 'a'.*at least 128 B"):
        spread_out(records, [CostedMemory(Memory("a", 1))])


def test_memories_that_are_too_small_are_refused():
    memories = [CostedMemory(Memory("a", 50)), CostedMemory(Memory("b", 60))]
    with pytest.raises(InfeasibleError, match=r"60 B in memory 'b'.*at least 70 B"):
        spread_out([UsageRecord("a", 70, 0, 1)], memories)
    with pytest.raises(InfeasibleError, match=r"110 B.*at least 120 B"):
        spread_out([UsageRecord(f"r{index}", 40, 0, 1) for index in range(3)], memories)
    with pytest.raises(SearchLimitError, match="'a' of 50 B, 'b' of 60 B"):
        spread_out([UsageRecord(f"r{index}", 35, 0, 1) for index in range(3)], memories)


def test_a_record_with_a_fixed_offset_lies_there_in_whichever_memory():
    fixed = UsageRecord("fixed", 60, 0, 2, offset=64)
    found = spread_out([fixed, UsageRecord("free", 30, 0, 2)])
    verify(found.problem, found.plan)
    assert [record.memory for record in found.problem.records] == ["slow", "fast"]
    assert found.plan.offsets[0] == 64


def test_a_gap_at_a_fixed_offset_is_filled():
    # What saves most ends beyond the memory where it must lie, and makes way.
    beyond = UsageRecord("beyond", 50, 0, 2, offset=60)
    within = UsageRecord("within", 60, 0, 2, offset=40)
    found = spread_out([beyond, within], traffic=[Traffic(99, 99), Traffic(1, 1)])
    verify(found.problem, found.plan)
    assert [record.memory for record in found.problem.records] == ["slow", "fast"]


def test_what_belongs_together_lies_in_one_memory():
    records = [UsageRecord(f"r{index}", 60, index, index + 1) for index in range(2)]
    records.append(UsageRecord("wide", 80, 0, 1))
    traffic = [Traffic(50, 50), Traffic(60, 60), Traffic(99, 99)]
    apart = spread_out(records, traffic=traffic)
    assert [record.memory for record in apart.problem.records] == ["slow", "fast", "fast"]
    assert apart.cost == apart.least_cost
    found = spread_out(records, traffic=traffic, together=[("r0", "r1")])
    assert [record.memory for record in found.problem.records] == ["fast", "fast", "slow"]
    assert found.least_cost == 0  # nothing is proved of such


def test_records_alone_are_units_of_their_own():
    stairs = (Stair(0, 4, 0, 1), Stair(4, 4, 0, 2))
    records = [UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 0, 2, outline=stairs)]
    units = units_of(records, ())
    assert [unit.members for unit in units] == [(0,), (1,)]
    assert [unit.is_loose for unit in units] == [False, True]
    assert [unit.record for unit in units] == records


def test_groups_that_share_a_record_are_one_that_takes_what_is_live_at_once():
    records = [
        UsageRecord("a", 8, 0, 2),
        UsageRecord("b", 8, 1, 4, overlaps=(PermittedOverlap("a", 4),)),
        UsageRecord("c", 4, 3, 5),
        UsageRecord("alone", 9, 0, 5),
    ]
    one, other = units_of(records, [{"b", "c"}, {"a", "b"}])
    assert one.members == (0, 1, 2)
    assert (one.record.size, one.record.start, one.record.end) == (16, 0, 5)
    assert one.is_loose
    assert other.members == (3,)
