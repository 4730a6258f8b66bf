"""Records that lie in one memory, as one thing to choose."""

from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import PermittedOverlap, UsageRecord
from arenite.strategies.memories.spread import units_of


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
