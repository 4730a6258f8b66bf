import pytest

from arenite.planner.errors import UnknownStrategyError
from arenite.strategies.fit import POLICIES, find_policy, known_policies, table
from arenite.strategies.fit.greedy_chains import GreedyChains


def test_ours_are_known_in_the_order_of_the_table() -> None:
    assert list(known_policies())[: len(POLICIES)] == [policy.name for policy in POLICIES]


def test_a_policy_is_found_by_its_name() -> None:
    assert find_policy("greedy-chains") == GreedyChains()


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownStrategyError, match=r"unknown policy 'luck'; known: .*greedy-chains"
    ):
        find_policy("luck")


def test_a_clash_of_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "POLICIES", (GreedyChains(), GreedyChains()))
    with pytest.raises(ValueError, match="'greedy-chains' exists already"):
        table.known_policies.__wrapped__()
