"""The choice for one memory, against every choice there is."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.placement.problem import UsageRecord
from arenite.strategies.memories.frontier import best_choice


@st.composite
def cases(draw):
    records, savings = [], []
    for index in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, 5))
        end = start + draw(st.integers(1, 4))
        records.append(UsageRecord(f"r{index}", draw(st.integers(1, 9)), start, end))
        savings.append(draw(st.integers(-4, 20)))
    room = draw(st.integers(0, 25))
    elsewhere = draw(st.none() | st.integers(0, 25))
    pinned = draw(st.dictionaries(st.integers(0, len(records) - 1), st.booleans(), max_size=2))
    return records, savings, room, elsewhere, pinned


def load(records, step):
    return sum(record.size for record in records if record.start <= step < record.end)


def allowed(records, taken, room, elsewhere, pinned):
    here = [record for record, is_here in zip(records, taken, strict=True) if is_here]
    there = [record for record, is_here in zip(records, taken, strict=True) if not is_here]
    return all(taken[index] == stated for index, stated in pinned.items()) and all(
        load(here, step) <= room and (elsewhere is None or load(there, step) <= elsewhere)
        for step in range(10)
    )


@given(cases())
def test_no_choice_saves_more(case):
    records, savings, room, elsewhere, pinned = case
    totals = [
        sum(saving for saving, is_here in zip(savings, taken, strict=True) if is_here)
        for taken in product((False, True), repeat=len(records))
        if allowed(records, taken, room, elsewhere, pinned)
    ]
    found = best_choice(records, savings, room, elsewhere, pinned)
    assert (found is None) == (not totals)
    if found is not None:
        assert found.exact
        assert found.saving == max(totals)
        assert allowed(records, found.taken, room, elsewhere, pinned)


@given(cases())
def test_few_sets_still_give_a_choice_that_is_allowed(case):
    records, savings, room, _, _ = case
    found = best_choice(records, savings, room, None, {}, most_sets=2)
    assert found is not None
    assert allowed(records, found.taken, room, None, {})


def test_of_equal_savings_the_memory_holds_more_bytes():
    records = [UsageRecord("small", 4, 0, 2), UsageRecord("large", 8, 0, 2)]
    found = best_choice(records, [0, 0], 8, None, {})
    assert found is not None
    assert found.taken == (False, True)


def test_a_choice_says_whether_it_is_exact():
    records = [UsageRecord(f"r{index}", 1, 0, 9) for index in range(4)]
    exact, pruned = (
        best_choice(records, [1, 2, 3, 4], 2, None, {}, most_sets=most) for most in (16, 3)
    )
    assert exact is not None
    assert pruned is not None
    assert (exact.exact, exact.saving) == (True, 7)
    assert not pruned.exact
    assert pruned.saving <= 7
