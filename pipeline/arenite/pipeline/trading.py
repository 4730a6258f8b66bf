"""A lowered program that a policy rewrote until its plan fits: recomputed, spilled, or both."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from arenite.planner.budget import LEAST, Budget
from arenite.planner.costs import Costs
from arenite.planner.derive import Derivation, derive
from arenite.planner.equivalence import check_same_values
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.operators.bands import Band
from arenite.planner.ordering import ShouldStop, never
from arenite.planner.plan import Plan
from arenite.planner.policy import AnytimePolicy, Policy, is_exact
from arenite.planner.problem import Problem
from arenite.planner.program import COMPUTE, Program
from arenite.planner.rewrites.rescheduling import SPILLED, peak_of
from arenite.planner.rules import Rules
from arenite.planner.timing import Timeline, check_timeline, simulate
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.movement import Wait
from arenite.runtime.rewrites.lanes import lower_moves

Place: TypeAlias = Callable[[Problem], Plan]

_ATTEMPTS = 8
"""Targets that a policy is given before a plan fits the budget."""


@dataclass(frozen=True, slots=True)
class Traded:
    """A program that trades time for memory, with a plan.

    Attributes:
        policy: Name of the policy.
        derivation: The program, its storage shared, and its records.
        plan: Where they lie.
        timeline: Its simulated run.
        whole_s: Seconds of a simulated run of the program as it was.
        num_repeated: Steps that run once more.
        num_rounded: Tensors that are kept with fewer bits for a while, so that outputs are not
            the same to the bit.
    """

    policy: str
    derivation: Derivation
    plan: Plan
    timeline: Timeline
    whole_s: float
    num_repeated: int
    num_rounded: int = 0

    @property
    def height(self) -> int:
        """Bytes of the arena that it computes in."""
        return self.plan.heights[0]

    @property
    def spilled(self) -> int:
        """Bytes of the memory that tensors are spilled to."""
        names = [memory.name for memory in self.derivation.problem.memories]
        return self.plan.heights[names.index(SPILLED)] if SPILLED in names else 0

    @property
    def extra_time(self) -> float:
        """Predicted time over that of the program as it was, less 1."""
        return self.timeline.seconds / self.whole_s - 1 if self.whole_s else 0.0


def one_lane(costs: Costs) -> Costs:
    """Return the costs of a link that carries one tensor at a time, as our runtime does."""
    return replace(costs, link=replace(costs.link, duplex=False))


def trade(
    program: Program,
    policy: Policy,
    budget: Budget,
    costs: Costs,
    rules: Rules,
    place: Place,
    height: int,
    should_stop: ShouldStop = never,
) -> Traded:
    """Return a program that a policy made of a lowered one, whose plan fits a budget.

    A policy counts bytes before storage is shared. It is first asked for as much more than the
    budget as sharing saves in the program as it is, and then for less until the plan fits.

    Args:
        program: A lowered program in its final order, none of its storage shared.
        policy: Decides what runs again and what moves.
        budget: Of the arena that it computes in; a share is of what it takes whole.
        costs: How quick the machine is; `one_lane` makes those of our runtime.
        rules: How memory is counted.
        place: Makes plans.
        height: Bytes that the arena of the program takes as it is.
        should_stop: Tells a search to end.

    Raises:
        UnmetBudgetError: The policy does not get as low.
        UnsupportedProgramError: It does not handle the program, or makes what does not run here.
        DifferentValuesError: What it makes computes something else.
        InvalidTimelineError: The simulated run is none that the program can have.
    """
    limit = budget.bytes_of(height)
    before = simulate(program, costs)
    target = None if limit is None else max(1, limit * peak_of(program) // max(1, height))
    lowest: int | None = None
    for _ in range(_ATTEMPTS):
        try:
            made = _made(program, policy, Budget(target), costs, should_stop)
        except UnmetBudgetError:  # by its own count; what it reaches may fit, once it shares
            target = None
            made = _made(program, policy, LEAST, costs, should_stop)
        found = derive(made, rules)
        num_rounded = 0 if is_exact(policy) else (_conversions(made) - _conversions(program)) // 2
        traded = Traded(
            policy.name,
            found,
            place(found.problem),
            simulate(made, costs),
            before.seconds,
            _num_repeated(program, made) - 2 * num_rounded,
            num_rounded,
        )
        if limit is None or traded.height <= limit:
            check_timeline(made, costs, traded.timeline)
            return traded
        lowest = traded.height if lowest is None else min(lowest, traded.height)
        if target is None:
            break
        target = max(1, min(target - 1, peak_of(made) * limit // traded.height))
    assert lowest is not None
    assert limit is not None
    raise UnmetBudgetError(policy.name, limit, lowest)


def _made(
    program: Program, policy: Policy, budget: Budget, costs: Costs, should_stop: ShouldStop
) -> Program:
    """Return what a policy makes of a program, with steps of our runtime alone."""
    if isinstance(policy, AnytimePolicy):
        made = policy.search(program, budget, costs, should_stop)
    else:
        made = policy(program, budget, costs)
    check_same_values(program, made, rounded=not is_exact(policy))
    made = lower_moves(made)
    for step in made.steps:
        operator = step.operator.operator if isinstance(step.operator, Band) else step.operator
        if not isinstance(operator, RuntimeOperator):
            raise UnsupportedProgramError(
                policy.name, f"makes step {step.name!r}, which our runtime does not run"
            )
    return made


def _conversions(program: Program) -> int:
    return sum(isinstance(step.operator, Convert) for step in program.steps)


def _num_repeated(program: Program, made: Program) -> int:
    computing = [step for step in made.steps if step.lane == COMPUTE]
    waits = sum(isinstance(step.operator, Wait) for step in computing)
    return len(computing) - waits - len(program.steps)
