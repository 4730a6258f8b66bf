"""Names are unique, and as they were wanted where that is possible."""

from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.programs.program import Names


def test_a_free_name_is_given_as_wanted_and_a_taken_one_numbered() -> None:
    names = Names(["a"])
    assert [names.take(wanted) for wanted in ("a", "b", "a", "a.2", "b")] == [
        "a.2", "b", "a.3", "a.2.2", "b.2",
    ]  # fmt: skip


@given(st.lists(st.text("ab.2", min_size=1, max_size=4)))
def test_no_name_is_given_twice(wanted: list[str]) -> None:
    names = Names(["a"])
    given_out = [names.take(name) for name in wanted]
    assert len({"a", *given_out}) == len(wanted) + 1
