import pytest

from arenite.planner.programs.costs import LEAST, Budget


@pytest.mark.parametrize(("text", "of_1000"), [("75%", 750), ("4KiB", 4096), ("12.5%", 125)])
def test_a_budget_is_a_size_or_a_part_of_the_peak(text: str, of_1000: int) -> None:
    budget = Budget.parse(text)
    assert budget.bytes_of(1000) == of_1000
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("text", ["0%", "-3%", "x%", "0", "many"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        Budget.parse(text)


def test_the_least_has_no_number() -> None:
    assert LEAST.bytes_of(1000) is None
    assert str(LEAST) == "least"
