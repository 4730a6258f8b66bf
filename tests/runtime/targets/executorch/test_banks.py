"""Which tensor lies in which of several memories."""

import random

import pytest

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.memory import Memory
from arenite.planner.problem import UsageRecord
from arenite.runtime.targets.executorch.banks import place_in_banks
from arenite.strategies import find

STRATEGY = find("greedy-by-size")


def record(name, size, start, end):
    return UsageRecord(name, size, start, end, 16)


def test_the_first_memory_gets_as_many_bytes_as_it_holds():
    # Largest first, it would hold the long one alone; the others are never live together.
    records = [record("long", 64, 0, 4), *(record(f"short {i}", 48, i, i + 1) for i in range(4))]
    fast, slow = place_in_banks(records, {}, [Memory("fast", 64), Memory("slow")], STRATEGY)
    assert sorted(fast) == [f"short {i}" for i in range(4)]
    assert slow == {"long": 0}


def test_records_are_chosen_together():
    # Taken one after another, in whatever order, they come to 160 B at most.
    records = [
        record("a", 80, 1, 4), record("b", 32, 1, 2), record("c", 48, 4, 6),
        record("d", 64, 4, 7), record("e", 80, 5, 8), record("f", 48, 5, 8),
    ]  # fmt: skip
    fast, _ = place_in_banks(records, {}, [Memory("fast", 96), Memory("slow")], STRATEGY)
    assert sorted(fast) == ["a", "c", "f"]


def test_a_choice_that_leaves_too_much_is_taken_back():
    # The short ones together have more bytes, but the long one has no room in the slow memory.
    records = [record("long", 64, 0, 4), *(record(f"short {i}", 48, i, i + 1) for i in range(4))]
    fast, slow = place_in_banks(records, {}, [Memory("fast", 64), Memory("slow", 48)], STRATEGY)
    assert fast == {"long": 0}
    assert sorted(slow) == [f"short {i}" for i in range(4)]


def test_a_pinned_tensor_stays_where_it_is_pinned():
    records = [record("a", 64, 0, 1), record("b", 64, 0, 1)]
    pinned = {"a": "slow"}
    fast, slow = place_in_banks(records, pinned, [Memory("fast"), Memory("slow")], STRATEGY)
    assert (set(fast), set(slow)) == ({"b"}, {"a"})


def test_a_tensor_that_no_memory_holds_is_proof():
    with pytest.raises(InfeasibleError, match="at least 64 B"):
        place_in_banks([record("a", 64, 0, 1)], {}, [Memory("x", 32), Memory("y", 48)], STRATEGY)


def test_more_than_all_memories_hold_at_once_is_proof():
    records = [record(name, 48, 0, 1) for name in "abc"]
    with pytest.raises(InfeasibleError, match="at least 144 B"):
        place_in_banks(records, {}, [Memory("x", 64), Memory("y", 64)], STRATEGY)


def test_what_is_not_found_is_not_called_impossible():
    records = [record(name, 48, 0, 1) for name in "ab"]
    pinned = {"a": "x", "b": "x"}
    with pytest.raises(SearchLimitError, match="'x' of 64 B, 'y' of 64 B"):
        place_in_banks(records, pinned, [Memory("x", 64), Memory("y", 64)], STRATEGY)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps_and_nothing_is_forgotten(seed):
    draw = random.Random(seed)
    records = []
    for index in range(40):
        start = draw.randrange(30)
        size = 16 * draw.randrange(1, 40)
        records.append(record(f"r{index}", size, start, start + draw.randrange(1, 9)))
    banks = [Memory("fast", 640), Memory("middle", 1280), Memory("slow")]
    found = place_in_banks(records, {}, banks, STRATEGY)
    by_name = {each.name: each for each in records}
    assert sorted(name for offsets in found for name in offsets) == sorted(by_name)
    for bank, offsets in zip(banks, found, strict=True):
        there = [(by_name[name], offset) for name, offset in offsets.items()]
        assert all(
            offset % 16 == 0 and offset + each.size <= (bank.capacity or 1 << 30)
            for each, offset in there
        )
        for index, (one, low) in enumerate(there):
            for other, high in there[index + 1 :]:
                shares = low < high + other.size and high < low + one.size
                assert not (shares and one.meets(other)), (one, other)
