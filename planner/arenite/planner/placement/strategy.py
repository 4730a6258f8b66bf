"""The interface of strategies, which `arenite.strategies` has.

A strategy is a frozen dataclass whose fields are its parameters and seed. It is pure:
the same problem gives the same plan, byte for byte.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from arenite.planner.errors import InfeasibleError, SearchLimitError, UnsupportedProblemError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem


class StrategyKind(StrEnum):
    """Kinds of decisions of strategies."""

    OFFSETS = "offsets"
    """An offset for each record."""
    OBJECTS = "objects"
    """A whole buffer for each record, the buffers then laid end to end."""


Placer: TypeAlias = Callable[[Problem], Plan]
"""A strategy, or any function of the same type."""


@runtime_checkable
class Strategy(Protocol):
    """Makes a plan for a problem.

    Attributes:
        name: Name on the command line.
        kind: Kind of its decision.
        complexity: Time in the number of records n.
        source: The paper or system it comes from.
        quick: Whether `best` runs it: no search, and milliseconds on a network.
    """

    name: ClassVar[str]
    kind: ClassVar[StrategyKind]
    complexity: ClassVar[str]
    source: ClassVar[str]
    quick: ClassVar[bool]

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return None, or the property of the problem that the strategy does not support."""
        ...

    def __call__(self, problem: Problem) -> Plan:
        """Return a plan.

        Raises:
            UnsupportedProblemError: `why_unsupported` gives a reason.
        """
        ...


Watch: TypeAlias = Callable[[Plan | None, int], bool]
"""Called with the best plan and lower bound so far; returns True to stop the search."""


@runtime_checkable
class Anytime(Strategy, Protocol):
    """A strategy that finds a plan early and improves it over time."""

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the best plan found when the search ends or `watch` stops it."""
        ...


def silent(_best: Plan | None, _lower_bound: int) -> bool:
    """Ignore progress and never stop."""
    return False


class AbandonedError(BaseException):
    """Raised inside a strategy that was abandoned; it is not reported as a failure."""


@runtime_checkable
class Abandoning(Protocol):
    """A watch that can end a strategy that does not ask it."""

    def abandoning(self) -> AbstractContextManager[None]:
        """Return a block that the request to stop ends at once.

        Raises:
            AbandonedError: Inside the block, wherever it is.
        """
        ...


@runtime_checkable
class KnowsOutlines(Protocol):
    """A strategy that lets records share the bytes that an outline leaves free.

    Attributes:
        knows_outlines: True.
    """

    knows_outlines: ClassVar[bool]


def knows_outlines(strategy: Strategy) -> bool:
    """Tell whether a strategy places records by their outlines, others by rectangles."""
    return isinstance(strategy, KnowsOutlines) and strategy.knows_outlines


def run(strategy: Strategy, problem: Problem, watch: Watch = silent) -> Plan:
    """Return the strategy's plan; `watch` may follow and stop an anytime strategy.

    A strategy that does not know outlines is given the hulls of the records. Its plan is valid,
    but its proof for them is no bound of the problem.

    A strategy only ever sees one memory: with several it runs on each in turn. `watch` is
    then given the sum of the bounds and, once every memory has a plan, the combined plan.
    If it stops the search, the remaining memories get the strategy's first plan.

    Raises:
        UnsupportedProblemError: The strategy does not handle this problem.
        InfeasibleError: Proved: nothing fits the capacity of a memory.
        SearchLimitError: Nothing was found that fits, though something may.
    """
    parts = problem.by_memory()
    if len(parts) == 1:
        return _run_one(strategy, problem, watch)
    progress = _MergedProgress(problem, parts, watch)
    for memory, part in zip(problem.memories, parts, strict=True):
        try:
            progress.plans.append(_run_one(strategy, part, progress.watch))
        except InfeasibleError as error:
            raise InfeasibleError(error.capacity, error.lower_bound, memory.name) from error
    return Plan.merged(problem, progress.plans)


def _run_one(strategy: Strategy, problem: Problem, watch: Watch) -> Plan:
    if problem.has_outlines and not knows_outlines(strategy):
        return run_on_hulls(strategy, problem, watch)
    reason = strategy.why_unsupported(problem)
    if reason is not None:
        raise UnsupportedProblemError(strategy.name, reason)
    if isinstance(strategy, Anytime):
        return strategy.search(problem, watch)
    return strategy(problem)


def run_on_hulls(strategy: Strategy, problem: Problem, watch: Watch = silent) -> Plan:
    """Return a plan by a strategy that takes records with outlines for whole rectangles.

    The problem has one memory, as a strategy sees it.
    """
    bound = problem.lower_bound

    def of_outlines(plan: Plan) -> Plan:
        return Plan.of(problem, plan.offsets, plan.strategy, plan.parameters, objects=plan.objects)

    def on_progress(best: Plan | None, _lower_bound: int) -> bool:
        return watch(None if best is None else of_outlines(best), bound)

    try:
        return of_outlines(_run_one(strategy, problem.hulls(), on_progress))
    except InfeasibleError as error:
        if error.capacity < bound:
            raise InfeasibleError(error.capacity, bound) from error
        raise SearchLimitError(
            f"strategy {strategy.name!r} found no plan within {error.capacity:,} B, because it "
            f"places records with outlines as whole rectangles; by their outlines at least "
            f"{bound:,} B are needed; try --strategy best",
            error.capacity,
        ) from error


class _MergedProgress:
    """Progress on a problem whose memories are planned one after another.

    Attributes:
        plans: The finished plans, in the order of the memories.
    """

    def __init__(self, problem: Problem, parts: Sequence[Problem], watch: Watch) -> None:
        self.plans: list[Plan] = []
        self._problem = problem
        self._bounds = [part.lower_bound for part in parts]
        self._watch = watch
        self._stopped = False

    def watch(self, best: Plan | None, lower_bound: int) -> bool:
        """Translate the progress of one memory's search into progress on the whole problem."""
        done = len(self.plans)
        bounds = [
            *(plan.lower_bound for plan in self.plans),
            max(lower_bound, self._bounds[done]),
            *self._bounds[done + 1 :],
        ]
        merged = None
        if best is not None and done + 1 == len(bounds):
            merged = Plan.merged(self._problem, [*self.plans, best])
        self._stopped = self._stopped or self._watch(merged, sum(bounds))
        return self._stopped
