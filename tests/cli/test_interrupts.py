"""Ctrl-C while a strategy runs that does not ask whether to stop."""

import signal
from dataclasses import dataclass
from typing import ClassVar

import pytest

from arenite.cli.console import observer as observer_module
from arenite.cli.console.interrupt import StopRequest, stop_on_interrupt
from arenite.cli.console.observer import watched
from arenite.pipeline.base import placing
from arenite.pipeline.base.placing import place
from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.strategy import AbandonedError
from arenite.strategies import Best
from arenite.strategies import best as best_module
from arenite.strategies.place.no_reuse import NoReuse
from support.problems import StubStrategy, problem_of

# Without reuse 16 B: more than the 10 B that are live at once.
PROBLEM = problem_of((2, 4, 6), (5, 2, 4), (3, 1, 5), (4, 5, 6), (1, 1, 7), (1, 2, 7))


@dataclass(frozen=True)
class Deaf(StubStrategy):
    """Is interrupted as if by a user, and would go on."""

    name: ClassVar[str] = "deaf"

    def __call__(self, _problem):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")


def quick(monkeypatch, *strategies):
    monkeypatch.setattr(best_module, "quick_strategies", lambda: list(strategies))


def test_a_strategy_that_does_not_ask_is_abandoned_for_the_best_plan_so_far(monkeypatch, capsys):
    quick(monkeypatch, NoReuse(), Deaf())
    outcome = place(Best(), PROBLEM, watched())
    assert (outcome.plan.strategy, outcome.interrupted) == ("no-reuse", True)
    assert "the best plan so far is kept" in capsys.readouterr().err


def test_the_second_ctrl_c_ends_the_program(monkeypatch):
    quick(monkeypatch, NoReuse(), Deaf())
    monkeypatch.setattr(observer_module.click, "echo", lambda *_, **__: signal.raise_signal(2))
    with pytest.raises(KeyboardInterrupt):
        place(Best(), PROBLEM, watched())


def test_a_strategy_alone_is_ended_with_the_program():
    with pytest.raises(KeyboardInterrupt):
        place(Deaf(), PROBLEM, watched())


@pytest.mark.parametrize("is_early", [True, False])
def test_a_request_ends_a_block_before_and_inside_it_once(is_early):
    with stop_on_interrupt() as request:
        if is_early:
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(AbandonedError):
            _interrupted_in_block(request)
        assert request.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def _interrupted_in_block(request):
    with request.abandoning():
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")


def test_outside_the_block_a_request_ends_nothing():
    request = StopRequest()
    with request.abandoning():
        pass
    request.ask()
    assert request.asked


@dataclass(frozen=True)
class Wrong(StubStrategy):
    """Lays all records at 0."""

    name: ClassVar[str] = "wrong"

    def __call__(self, problem):
        return Plan.of(problem, (0,) * len(problem.records), self.name)


@pytest.mark.parametrize("least", [0, 1_000])
def test_a_plan_of_many_records_is_verified_before_it_is_waited_for(monkeypatch, least):
    checked = []

    def verify(problem, plan):
        checked.append(plan)
        real(problem, plan)

    real = placing.verify
    monkeypatch.setattr(placing, "verify", verify)
    monkeypatch.setattr(placing, "_SLOW_TO_VERIFY", least)
    quick(monkeypatch, NoReuse(), Deaf())
    outcome = place(Best(), PROBLEM, watched())
    assert checked == [outcome.plan]  # once, whenever

    quick(monkeypatch, NoReuse(), Wrong())
    with pytest.raises(InvalidPlanError):
        place(Best(), PROBLEM, watched())
