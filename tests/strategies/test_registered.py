from importlib.metadata import EntryPoint

import pytest

from arenite.planner.placement.strategy import Strategy
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.registered import POLICY_REGISTER, STRATEGY_REGISTER
from arenite.strategies.schedules.greedy_chains import GreedyChains

PLACE = "arenite.strategies.place.one_pass"
CHAINS = "arenite.strategies.schedules.greedy_chains"


def test_a_class_that_is_registered_is_made() -> None:
    entry = EntryPoint("theirs", f"{PLACE}:GreedyBySize", STRATEGY_REGISTER.group)
    assert STRATEGY_REGISTER.loaded(entry) == GreedyBySize()


def test_an_object_of_another_kind_is_refused() -> None:
    wrong = EntryPoint("wrong", f"{CHAINS}:ChainLimits", POLICY_REGISTER.group)
    with pytest.raises(ValueError, match="is not a policy"):
        POLICY_REGISTER.loaded(wrong)
    with pytest.raises(ValueError, match="is not a strategy"):
        STRATEGY_REGISTER.loaded(wrong)


def test_ours_come_first_and_others_follow() -> None:
    class Theirs(GreedyBySize):
        name = "theirs"

    others: list[tuple[str, Strategy]] = [("package:Theirs", Theirs())]
    assert list(STRATEGY_REGISTER.by_name((GreedyBySize(),), others)) == [
        "greedy-by-size",
        "theirs",
    ]


def test_a_policy_may_be_registered_by_its_class() -> None:
    entry = EntryPoint("theirs", f"{CHAINS}:GreedyChains", POLICY_REGISTER.group)
    assert POLICY_REGISTER.loaded(entry) == GreedyChains()
