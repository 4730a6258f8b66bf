import logging
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from arenite.planner.errors import PluginError
from arenite.planner.placement.strategy import Strategy
from arenite.strategies import registered
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
    with pytest.raises(PluginError, match="is not a policy"):
        POLICY_REGISTER.loaded(wrong)
    with pytest.raises(PluginError, match="is not a strategy"):
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


@pytest.mark.parametrize("text", ["raise OSError('no licence')", "import nowhere", "exit(3)", "("])
def test_an_entry_that_cannot_be_imported_is_left_out_with_a_warning(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "their_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_module", raising=False)
    group = STRATEGY_REGISTER.group
    entries = EntryPoints(
        [
            EntryPoint("broken", "their_module:Theirs", group),
            EntryPoint("theirs", f"{PLACE}:GreedyBySize", group),
        ]
    )
    monkeypatch.setattr(registered, "entry_points", entries.select)
    assert STRATEGY_REGISTER.others() == ((f"{PLACE}:GreedyBySize", GreedyBySize()),)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    message = record.getMessage()
    assert message.startswith("strategy 'broken' of their_module:Theirs cannot be imported: ")
    assert message.endswith("; it is left out")
