from importlib import import_module
from pkgutil import iter_modules

import pytest

from arenite.planner.errors import PluginError, UnknownStrategyError
from arenite.strategies import POLICIES, find_policy, known_policies, policies, survey
from arenite.strategies.registered import POLICY_REGISTER
from arenite.strategies.schedules.greedy_chains import GreedyChains
from support.entry_points import stated


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
    monkeypatch.setattr(policies, "POLICIES", (GreedyChains(), GreedyChains()))
    with pytest.raises(PluginError, match="'greedy-chains' exists already"):
        policies.known_policies.__wrapped__()


def test_the_policies_of_the_survey_are_registered_each_by_its_name() -> None:
    entries = {name: value for group, name, value in stated() if group == POLICY_REGISTER.group}
    modules = [
        import_module(f"{survey.__name__}.{each.name}") for each in iter_modules(survey.__path__)
    ]
    classes = {
        f"{each.__module__}:{each.__qualname__}": each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and hasattr(each, "name")
    }
    assert entries == {each.name: origin for origin, each in classes.items()}
    assert {*known_policies()} >= {*entries}
    assert len(entries) == 19
