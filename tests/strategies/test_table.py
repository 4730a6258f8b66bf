import re

import pytest

from arenite.planner.errors import PluginError, UnknownStrategyError
from arenite.strategies import ORDERS, STRATEGIES, find, known, table
from arenite.strategies.place.one_pass import GreedyBySize


def test_ours_are_known_in_the_order_of_the_table() -> None:
    ours = [strategy.name for strategy in STRATEGIES]
    assert list(known())[: len(ours)] == ours


def test_best_comes_last_and_does_not_run_itself() -> None:
    assert STRATEGIES[-1].name == "best"
    assert not STRATEGIES[-1].quick


def test_a_strategy_is_found_by_its_name() -> None:
    assert find("greedy-by-size") == GreedyBySize()


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownStrategyError, match="greedy-by-size") as caught:
        find("greedy-by-luck")
    assert caught.value.known == tuple(known())


def test_a_clash_of_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "STRATEGIES", (GreedyBySize(), GreedyBySize()))
    with pytest.raises(PluginError, match="'greedy-by-size' exists already"):
        table.known.__wrapped__()


def test_cost_and_source_are_stated_once() -> None:
    for strategy in (*STRATEGIES, *ORDERS):
        assert strategy.complexity
        assert strategy.source
        for documented in type(strategy).__mro__[:-1]:
            assert not re.search(r"^ *(Cost|Source):", documented.__doc__ or "", re.MULTILINE)
