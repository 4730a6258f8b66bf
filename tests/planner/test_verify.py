from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.verification import (
    MisalignedError,
    MovedError,
    NegativeOffsetError,
    OverCapacityError,
    OverlapError,
    WrongBoundError,
    WrongCountError,
    WrongHeightError,
    verify,
)
from arenite.planner.tensors import Memory
from support.oracle import paint
from support.problems import (
    problems,
    problems_in_memories,
    problems_with_outlines,
    problems_with_overlaps,
)

PROBLEM = Problem.of(
    (
        UsageRecord("a", 32, 0, 2, 16),
        UsageRecord("b", 16, 1, 3, 16),
        UsageRecord("c", 32, 2, 4, 16, offset=16),
    ),
    capacity=64,
)
PLAN = Plan((16, 0, 16), (48,), "by hand", (48,))


def test_a_right_plan_passes():
    verify(PROBLEM, PLAN)


BROKEN = {
    "an offset too few": ({"offsets": (16, 0)}, WrongCountError),
    "an offset too many": ({"offsets": (16, 0, 16, 0)}, WrongCountError),
    "an offset below the start": ({"offsets": (16, -16, 16)}, NegativeOffsetError),
    "an offset between multiples": ({"offsets": (24, 0, 16)}, MisalignedError),
    "a fixed record elsewhere": ({"offsets": (16, 0, 32)}, MovedError),
    "an overlap, and the right height": (
        {"offsets": (0, 16, 16), "heights": (48,)}, OverlapError),
    "an overlap": ({"offsets": (0, 16, 16)}, OverlapError),
    "a height too many": ({"heights": (48, 0)}, WrongCountError),
    "no height": ({"heights": ()}, WrongCountError),
    "a bound too many": ({"lower_bounds": (48, 0)}, WrongCountError),
    "heights and bounds too many": (
        {"heights": (48, 0), "lower_bounds": (48, 0)}, WrongCountError),
    "a height too low": ({"heights": (47,)}, WrongHeightError),
    "a height too high": ({"heights": (49,)}, WrongHeightError),
    "a bound above the height": ({"lower_bounds": (49,)}, WrongBoundError),
    "more than the capacity": ({"offsets": (48, 0, 16), "heights": (80,)}, OverCapacityError),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_has_its_error(name):
    broken, error = BROKEN[name]
    with pytest.raises(error) as caught:
        verify(PROBLEM, replace(PLAN, **broken))
    assert type(caught.value) is error


def test_an_overlap_names_both_records_the_step_and_the_bytes():
    with pytest.raises(
        OverlapError, match=r"'c' and 'b' are both live at step 2 .* 16 to 32"
    ) as caught:
        verify(PROBLEM, replace(PLAN, offsets=(32, 16, 16), heights=(64,)))
    assert caught.value.records == ("b", "c")


def stacked(problem):
    """Offsets of records that each lie on all before them which they meet, touching the top."""
    offsets = []
    for index, record in enumerate(problem.records):
        top = 0
        for other, offset in zip(problem.records[:index], offsets, strict=True):
            if other.memory == record.memory and other.meets(record):
                top = max(top, offset + other.size)
        offsets.append(-(-top // record.alignment) * record.alignment)
    return offsets


@st.composite
def placements(draw):
    """A problem and a plan that is as likely wrong as right."""
    problem = draw(problems(max_records=6) | problems_in_memories(max_records=6))
    offsets = stacked(problem)
    how = draw(st.sampled_from(("stacked", "permuted", "two at one offset", "scattered")))
    if how == "permuted":
        offsets = draw(st.permutations(offsets))
    elif how == "two at one offset" and offsets:
        offsets[draw(st.integers(0, len(offsets) - 1))] = draw(st.sampled_from(offsets))
    elif how == "scattered":
        offsets = [r.alignment * draw(st.integers(0, 80 // r.alignment)) for r in problem.records]
    plan = Plan.of(problem, tuple(offsets), how)
    heights = [
        max(0, height + draw(st.sampled_from((0, 0, 0, 0, -1, 1)))) for height in plan.heights
    ]
    return problem, replace(plan, heights=tuple(heights), lower_bounds=(0,) * len(heights))


@settings(max_examples=300)
@given(placements())
def test_verify_and_the_painted_grid_agree_on_right_and_wrong(placement):
    problem, plan = placement
    try:
        paint(problem, replace(plan, lower_bounds=(10**9,) * len(plan.heights)))
        painted = True
    except AssertionError:
        painted = False
    try:
        verify(problem, plan)
        verified = True
    except InvalidPlanError:
        verified = False
    assert verified == painted


@pytest.mark.parametrize("offset", [1, 8, 15])
def test_an_overlap_is_found_from_below_from_above_and_at_one_offset(offset):
    records = (UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 1, 3))
    with pytest.raises(OverlapError, match="step 1"):
        verify(Problem(records), Plan((8, offset), (max(8, offset) + 8,), "by hand", (16,)))


def test_an_overlap_with_what_lies_above_is_found():
    records = (
        UsageRecord("high", 8, 0, 4),
        UsageRecord("low", 8, 1, 4),
        UsageRecord("c", 8, 2, 4),
    )
    verify(Problem(records), Plan((16, 0, 8), (24,), "by hand", (24,)))
    with pytest.raises(OverlapError, match=r"'c' and 'high' .* share bytes 16 to 17"):
        verify(Problem(records), Plan((16, 0, 9), (24,), "by hand", (24,)))


def test_records_may_come_in_any_order():
    records = (UsageRecord("c", 8, 2, 3), UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 1, 3))
    verify(Problem(records), Plan((0, 0, 8), (16,), "by hand", (16,)))
    with pytest.raises(OverlapError, match="'b' and 'a' are both live at step 1"):
        verify(Problem(records), Plan((8, 0, 0), (16,), "by hand", (16,)))


def test_of_several_the_one_that_died_goes():
    records = (
        UsageRecord("low", 8, 0, 4),
        UsageRecord("high", 8, 0, 2),
        UsageRecord("c", 8, 2, 4),
    )
    verify(Problem(records), Plan((0, 8, 8), (16,), "by hand", (16,)))
    with pytest.raises(OverlapError, match="'c' and 'low' are both live at step 2"):
        verify(Problem(records), Plan((0, 8, 0), (16,), "by hand", (16,)))


def test_blocks_that_touch_in_bytes_or_in_time_do_not_overlap():
    records = (UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 0, 2), UsageRecord("c", 16, 2, 3))
    verify(Problem(records), Plan((0, 8, 0), (16,), "by hand", (16,)))


@settings(max_examples=300, deadline=None)
@given(problems_with_overlaps(max_records=4), st.data())
def test_a_plan_with_overlaps_passes_exactly_when_the_painted_grid_allows_it(problem, data):
    offsets = tuple(
        record.alignment * data.draw(st.integers(0, 40 // record.alignment))
        for record in problem.records
    )
    plan = Plan.of(problem, offsets, "by chance")
    try:
        paint(problem, plan)
    except AssertionError:
        with pytest.raises(OverlapError):
            verify(problem, plan)
    else:
        verify(problem, plan)
        assert problem.lower_bound <= plan.height


OVERLAPPING = Problem(
    (
        UsageRecord("operand", 32, 0, 2),
        UsageRecord("result", 16, 1, 3, overlaps=(PermittedOverlap("operand", 8),)),
    )
)


@pytest.mark.parametrize(("offset", "is_right"), [(8, True), (9, False), (16, False), (24, False)])
def test_a_result_reaches_into_its_operand_from_below_as_far_as_permitted(offset, is_right):
    plan = replace(Plan.of(OVERLAPPING, (16, offset), "by hand"), lower_bounds=(40,))
    if is_right:
        verify(OVERLAPPING, plan)
    else:
        with pytest.raises(OverlapError):
            verify(OVERLAPPING, plan)


def test_permission_does_not_depend_on_who_comes_first():
    result = UsageRecord("result", 16, 0, 2, overlaps=(PermittedOverlap("operand", 8),))
    problem = Problem((result, UsageRecord("operand", 32, 0, 1)))
    verify(problem, replace(Plan.of(problem, (8, 16), "by hand"), lower_bounds=(40,)))


def test_behind_a_permitted_overlap_another_is_found():
    # Of the three that are live at step 1, `a` may reach into `b` and `b` into `c`, and `a`
    # reaches beyond `b` into `c`.
    c = UsageRecord("c", 20, 0, 2)
    b = UsageRecord("b", 20, 1, 2, overlaps=(PermittedOverlap("c", 16),))
    a = UsageRecord("a", 20, 1, 3, overlaps=(PermittedOverlap("b", 8),))
    with pytest.raises(OverlapError, match=r"'a' and 'c' are both live at step 1 .* 16 to 20"):
        verify(Problem((c, b, a)), Plan((16, 12, 0), (36,), "by hand", (0,)))


def test_a_permitted_overlap_lowers_the_bound():
    assert OVERLAPPING.lower_bound == 40


TWO_MEMORIES = Problem(
    (
        UsageRecord("a", 32, 0, 2, memory="fast"),
        UsageRecord("b", 16, 0, 2, memory="slow"),
        UsageRecord("c", 16, 1, 3, memory="fast"),
    ),
    memories=(Memory("fast", 48), Memory("slow", 16)),
)
IN_BOTH = Plan((0, 0, 32), (48, 16), "by hand", (48, 16))


@given(problem=problems_with_outlines(max_records=5), data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_plan_of_outlines_passes_exactly_when_the_painted_grid_allows_it(problem, data):
    offsets = tuple(
        data.draw(st.integers(0, 32 // record.alignment)) * record.alignment
        for record in problem.records
    )
    plan = replace(Plan.of(problem, offsets, "by hand"), lower_bounds=(0,))
    is_right = True
    try:
        # The grid judges the bound too, which is of no interest here.
        paint(problem, replace(plan, lower_bounds=(1 << 30,)))
    except AssertionError:
        is_right = False
    if is_right:
        verify(problem, plan)
    else:
        with pytest.raises(OverlapError):
            verify(problem, plan)


STAIRS = (Stair(0, 16, 0, 1), Stair(16, 16, 0, 2), Stair(32, 16, 0, 3))


@pytest.mark.parametrize(
    ("offset", "start", "is_right"),
    [(0, 1, True), (16, 1, False), (1, 1, False), (16, 2, True), (32, 2, False), (48, 0, True)],
)
def test_what_a_record_leaves_of_its_rectangle_is_free(offset, start, is_right):
    image = UsageRecord("image", 48, 0, 3, outline=STAIRS)
    problem = Problem((image, UsageRecord("a", 16, start, 3)))
    plan = Plan.of(problem, (0, offset), "by hand")
    if is_right:
        verify(problem, plan)
    else:
        with pytest.raises(OverlapError, match=f"live at step {start} and share bytes") as caught:
            verify(problem, plan)
        assert caught.value.records == ("a", "image")


def test_a_stair_begins_when_it_says():
    image = UsageRecord("image", 32, 0, 3, outline=(Stair(0, 16, 0, 3), Stair(16, 16, 2, 3)))
    problem = Problem((image, UsageRecord("a", 16, 0, 2)))
    verify(problem, replace(Plan.of(problem, (0, 16), "by hand"), lower_bounds=(0,)))


def test_a_record_with_an_outline_is_as_high_as_its_rectangle():
    problem = Problem((UsageRecord("a", 48, 0, 3, outline=STAIRS[:1]),))
    with pytest.raises(WrongHeightError, match="height 16 B stated, 48 B used"):
        verify(problem, Plan((0,), (16,), "by hand", (0,)))


def test_records_in_different_memories_may_have_the_same_offsets():
    verify(TWO_MEMORIES, IN_BOTH)
    assert (IN_BOTH.height, IN_BOTH.lower_bound, IN_BOTH.optimal) == (64, 64, True)


@pytest.mark.parametrize(
    ("problem", "broken", "error", "message"),
    [
        (TWO_MEMORIES, {"offsets": (0, 0, 16)}, OverlapError, "'c' and 'a'"),
        (TWO_MEMORIES, {"heights": (48,)}, WrongCountError, "1 heights and 2 lower bounds for 2"),
        (TWO_MEMORIES, {"lower_bounds": (48,)}, WrongCountError, "2 heights and 1 lower bounds"),
        (TWO_MEMORIES, {"heights": (48, 48)}, WrongHeightError, "'slow': height 48 B"),
        (TWO_MEMORIES, {"heights": (16, 48)}, WrongHeightError, "'fast': height 16 B"),
        (TWO_MEMORIES, {"lower_bounds": (48, 17)}, WrongBoundError, "'slow': lower bound 17 B"),
        (TWO_MEMORIES, {"lower_bounds": (49, 15)}, WrongBoundError, "'fast': lower bound 49 B"),
        (
            replace(TWO_MEMORIES, memories=(Memory("fast", 56), Memory("slow", 8))),
            {},
            OverCapacityError,
            "'slow': 16 B used, 8 B allowed",
        ),
    ],
)
def test_each_memory_is_checked_by_itself(problem, broken, error, message):
    with pytest.raises(error, match=message):
        verify(problem, replace(IN_BOTH, **broken))
