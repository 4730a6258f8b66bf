import pytest

from arenite.planner.errors import ModelError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import (
    PermittedOverlap,
    Problem,
    Rectangle,
    UsageRecord,
    load_spans,
)
from arenite.planner.tensors import Memory

STEPS = (Stair(0, 8, 0, 2), Stair(8, 8, 0, 3), Stair(16, 16, 1, 5))
IMAGE = UsageRecord("image", 32, 0, 5, outline=STEPS)


def test_stairs_that_share_nothing_make_an_outline():
    assert IMAGE.stairs == STEPS


def test_a_record_without_an_outline_is_one_stair():
    assert UsageRecord("a", 8, 2, 4).stairs == (Stair(0, 8, 2, 4),)


def test_stairs_may_meet_at_a_step_or_at_a_byte():
    outline = (Stair(0, 8, 0, 2), Stair(0, 8, 2, 4), Stair(8, 8, 1, 3))
    assert UsageRecord("a", 16, 0, 4, outline=outline).stairs == outline


@pytest.mark.parametrize(
    "stair",
    [
        Stair(-1, 8, 0, 4), Stair(9, 8, 0, 4), Stair(0, 8, 0, 5), Stair(0, 8, -1, 2),
    ],
)  # fmt: skip
def test_a_stair_outside_its_record_is_refused(stair):
    with pytest.raises(ModelError, match=r"'a': a stair of its outline, bytes .* is not inside"):
        UsageRecord("a", 16, 0, 4, outline=(stair,))


@pytest.mark.parametrize("stair", [Stair(0, 0, 0, 4), Stair(0, 8, 2, 2), Stair(0, 8, 3, 2)])
def test_an_empty_stair_is_refused(stair):
    with pytest.raises(ModelError, match="'a': a stair of its outline is empty"):
        UsageRecord("a", 16, 0, 4, outline=(stair,))


@pytest.mark.parametrize(
    "outline",
    [
        (Stair(0, 8, 0, 4), Stair(7, 8, 3, 4)),
        (Stair(7, 8, 0, 2), Stair(0, 8, 1, 4)),
        (Stair(0, 16, 0, 4), Stair(4, 4, 1, 2)),
        (Stair(0, 4, 0, 1), Stair(4, 12, 0, 3), Stair(0, 4, 1, 2), Stair(0, 8, 2, 3)),
        (Stair(0, 4, 0, 1), Stair(0, 4, 0, 1)),
    ],
)
def test_stairs_that_share_a_byte_at_a_step_are_refused(outline):
    with pytest.raises(ModelError, match="'a': two stairs of its outline share bytes at step"):
        UsageRecord("a", 16, 0, 4, outline=outline)


def test_an_outline_and_permitted_overlaps_exclude_each_other():
    overlaps = (PermittedOverlap("image", 4),)
    with pytest.raises(ModelError, match="'a' has both an outline and permitted overlaps"):
        UsageRecord("a", 8, 4, 6, overlaps=overlaps, outline=(Stair(0, 8, 4, 5),))
    with pytest.raises(ModelError, match="may overlap 'image', which has an outline"):
        Problem((IMAGE, UsageRecord("a", 8, 4, 6, overlaps=overlaps)))


def test_the_load_is_that_of_the_stairs():
    problem = Problem((IMAGE, UsageRecord("a", 4, 3, 5)))
    spans = [(span.start, span.end, span.load) for span in load_spans(problem.records)]
    assert spans == [(0, 1, 16), (1, 2, 32), (2, 3, 24), (3, 5, 20)]
    assert problem.lower_bound == 32


def test_steps_at_which_no_stair_is_live_have_no_span():
    outline = (Stair(0, 8, 0, 1), Stair(0, 8, 3, 4))
    spans = list(load_spans([UsageRecord("a", 8, 0, 4, outline=outline)]))
    assert [(span.start, span.load) for span in spans] == [(0, 8), (3, 8)]


def test_no_plan_is_lower_than_a_record_whatever_its_load():
    outline = (Stair(0, 8, 0, 1), Stair(8, 8, 1, 2))
    assert Problem((UsageRecord("a", 16, 0, 2, outline=outline),)).lower_bound == 16


def test_what_alignment_wastes_counts_only_where_the_bytes_of_stairs_are_aligned():
    beside = UsageRecord("b", 9, 0, 1, alignment=8)
    for offset, bound in ((8, 9 + 7 + 9), (9, 9 + 9)):
        outline = (Stair(offset, 9, 0, 1),)
        stair = UsageRecord("a", 24, 0, 1, alignment=8, outline=outline)
        assert [span.bound for span in load_spans([stair, beside])] == [bound]


def test_hulls_are_whole_rectangles():
    plain = UsageRecord("a", 4, 3, 5)
    problem = Problem((IMAGE, plain))
    assert problem.has_outlines
    assert problem.hulls() == Problem((UsageRecord("image", 32, 0, 5), plain))
    assert not problem.hulls().has_outlines
    assert problem.hulls().hulls() == problem.hulls()


def test_rectangles_are_those_of_the_stairs_where_the_plan_puts_them():
    memories = (Memory("fast"), Memory("slow"))
    records = (
        UsageRecord("image", 32, 0, 5, memory="slow", outline=STEPS),
        UsageRecord("a", 4, 3, 5, memory="fast"),
    )
    problem = Problem(records, memories=memories)
    assert list(problem.rectangles((100, 0))) == [
        Rectangle("image", "slow", 100, 8, 0, 2),
        Rectangle("image", "slow", 108, 8, 0, 3),
        Rectangle("image", "slow", 116, 16, 1, 5),
        Rectangle("a", "fast", 0, 4, 3, 5),
    ]
