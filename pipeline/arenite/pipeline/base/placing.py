"""Run one strategy within limits, observed, and verify its plan."""

import dataclasses
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from arenite.pipeline.base.observing import UNLIMITED, Search, SearchLimits
from arenite.pipeline.base.text import exact, gap
from arenite.planner import Plan, Problem, Strategy, verify
from arenite.planner.errors import (
    AreniteError,
    FailedStrategyError,
    InfeasibleError,
    InvalidPlanError,
    SearchLimitError,
)
from arenite.planner.placement import Anytime, Watch, run, silent
from arenite.strategies import Best

logger = logging.getLogger(__name__)

_SLOW_TO_VERIFY = 50_000
"""Records; it takes a fraction of a second."""

_LIMITS_OF_WORK = {"max_nodes", "max_nodes_to_fit", "max_work"}
"""Parameters that end a search after so much work, with None for no end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plan of a strategy, verified.

    Attributes:
        seconds: Wall-clock time of the strategy.
        interrupted: Whether the user cut the search short.
    """

    plan: Plan
    seconds: float
    interrupted: bool


class Placed(ABC):
    """What has a plan: its height, and the proof."""

    __slots__ = ()

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The offsets, with the proof."""

    @property
    def height(self) -> int:
        """Bytes of the arena."""
        return self.plan.height

    @property
    def lower_bound(self) -> int:
        """Bytes below which no plan of these records exists."""
        return self.plan.lower_bound

    @property
    def optimal(self) -> bool:
        """Whether the height is proved to be the least."""
        return self.plan.optimal


def configured(
    strategy: Strategy, *, seed: int | None = None, time_limit_s: float | None = None
) -> Strategy:
    """Return the strategy with this seed, and without limits of work that the clock replaces.

    Args:
        seed: Of its random numbers, if it draws any.
        time_limit_s: Seconds that the search will have, if the user limits them.
    """
    if not dataclasses.is_dataclass(strategy) or isinstance(strategy, type):
        return strategy
    own = {parameter.name for parameter in dataclasses.fields(strategy)}
    changes: dict[str, object] = {}
    if time_limit_s is not None:
        changes |= dict.fromkeys(own & _LIMITS_OF_WORK)
    if seed is not None and "seed" in own:
        changes["seed"] = seed
    elif seed is not None:
        logger.info("strategy %r takes no seed", strategy.name)
    return dataclasses.replace(strategy, **changes)


def place(strategy: Strategy, problem: Problem, limits: SearchLimits = UNLIMITED) -> Outcome:
    """Return the verified plan of a strategy.

    An anytime strategy is shown to the observer while it runs, and keeps its best plan when the
    observer or the time limit stops it.

    Args:
        problem: The records to place; the caller checks the capacity.

    Raises:
        PlanError: It made no plan, or a wrong one, or failed; the error names the strategy.
    """
    boundless = problem.with_capacity(None)
    verified = None
    is_anytime = isinstance(strategy, Anytime)
    with limits.observer.searching(strategy.name, "plan" if is_anytime else "") as found:
        if is_anytime:
            # Computed here: until it is known, Ctrl-C ends the program.
            logger.debug("%s: lower bound %d B", strategy.name, problem.lower_bound)
            started = time.perf_counter()
            watcher = _Watcher(found, strategy.name, limits.is_over(), boundless)
            plan = run_strategy(strategy, problem, watcher)
            verified = watcher.verified
        else:
            started = time.perf_counter()
            plan = run_strategy(strategy, problem)
    seconds = time.perf_counter() - started
    logger.info("%s: height %d B in %.3f s", strategy.name, plan.height, seconds)
    if plan != verified:
        _verify(boundless, plan, strategy.name)
    return Outcome(plan, seconds, interrupted=found.was_stopped)


def run_strategy(strategy: Strategy, problem: Problem, watch: Watch = silent) -> Plan:
    """Return the plan of a strategy, which may be another package's.

    Raises:
        FailedStrategyError: The strategy raised an unexpected error or returned no plan.
    """
    try:
        plan: object = run(strategy, problem, watch)
    except (AreniteError, MemoryError):
        raise
    except Exception as error:
        logger.info("%s failed", strategy.name, exc_info=True)
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise FailedStrategyError(strategy.name, reason) from error
    if not isinstance(plan, Plan):
        raise FailedStrategyError(strategy.name, f"returned {type(plan).__name__}, expected Plan")
    return plan


def _verify(problem: Problem, plan: Plan, strategy: str) -> None:
    """Check the plan of a strategy.

    Raises:
        InvalidPlanError: It breaks a rule; the error names the strategy.
    """
    try:
        verify(problem, plan)
    except InvalidPlanError as error:
        error.args = (f"strategy {strategy!r} returned an invalid plan: {error}",)
        raise


def may_fit(problem: Problem) -> bool:
    """Tell whether the lower bound leaves room for a plan within the capacity."""
    return problem.capacity is None or problem.lower_bound <= problem.capacity


def check_bound(problem: Problem) -> None:
    """Return if a plan may fit the capacity; asked before the search.

    Raises:
        InfeasibleError: None can.
    """
    if problem.capacity is not None and not may_fit(problem):
        raise InfeasibleError(problem.capacity, problem.lower_bound)


def check_capacity(problem: Problem, outcome: Outcome, strategy: Strategy) -> None:
    """Return if the plan fits.

    Raises:
        InfeasibleError: No plan fits.
        SearchLimitError: This one does not; another may.
    """
    plan, capacity = outcome.plan, problem.capacity
    if capacity is None or plan.height <= capacity:
        return
    if plan.lower_bound > capacity:
        raise InfeasibleError(capacity, plan.lower_bound)
    raise SearchLimitError(
        f"strategy {strategy.name!r} found no plan within {capacity:,} B: its lowest takes "
        f"{plan.height:,} B, but one may exist: the lower bound is {plan.lower_bound:,} B. Raise "
        f"--capacity{_or_what_helps(strategy, problem)}",
        capacity,
    )


def _or_what_helps(strategy: Strategy, problem: Problem) -> str:
    """Return the advice for a lower plan: more time helps only a search."""
    if not isinstance(strategy, Anytime):
        return " or try --strategy best"
    reason = strategy.why_not_searched(problem) if isinstance(strategy, Best) else None
    if reason is not None:
        return f"; it cannot search for a lower one, since the exact search {reason}"
    return " or try a longer --time-limit"


@dataclass(slots=True)
class _Watcher:
    """Shows a search and ends it when the observer or the time limit stops it.

    Plans of many records are verified as they are found, so that stopping is quick.
    """

    search: Search
    strategy: str
    is_over: Callable[[], bool]
    problem: Problem
    verified: Plan | None = field(default=None, init=False)

    def __call__(self, best: Plan | None, lower_bound: int) -> bool:
        stops = self.search.should_stop()
        is_new = best is not None and best != self.verified
        if best is not None and is_new and len(best.offsets) >= _SLOW_TO_VERIFY:
            _verify(self.problem, best, self.strategy)
            self.verified = best
        self.search.show(_progress(self.strategy, best, lower_bound))
        return stops or self.is_over()

    def abandoning(self) -> AbstractContextManager[None]:
        """Return a block that the observer may end at once."""
        return self.search.abandoning()


def _progress(strategy: str, best: Plan | None, lower_bound: int) -> str:
    if best is None:
        return f"{strategy}: no plan yet, bound {exact(lower_bound)}"
    return (
        f"{strategy}: height {exact(best.height)}, bound {exact(lower_bound)}, "
        f"gap {gap(best.height, lower_bound)}  (Ctrl-C keeps the best)"
    )
