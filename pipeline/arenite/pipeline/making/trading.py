"""A lowered program that a policy rewrote until its plan fits: recomputed, spilled, or both."""

from dataclasses import dataclass, replace

from arenite.planner import LEAST, Budget, Candidate, Costs, Policy, Program, Rules, ShouldStop
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.operators import Band
from arenite.planner.placement import Placer
from arenite.planner.programs import COMPUTE, AnytimePolicy, check_same_values, is_exact, never
from arenite.planner.rewrites import peak_of
from arenite.planner.timing import Timeline, check_timeline, simulate
from arenite.runtime.operators import Convert, PackBits, RuntimeOperator, UnpackBits, Wait
from arenite.runtime.rewrites import lower_moves

_ATTEMPTS = 8
"""Targets that a policy is given before a plan fits the budget."""


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """The result of a policy for a candidate.

    Attributes:
        num_repeated: Steps that run once more.
        num_rounded: Tensors that are kept with fewer bits for a while, so that outputs are not
            the same to the bit.
    """

    policy: str
    timeline: Timeline
    num_repeated: int
    num_rounded: int = 0

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross the link to the memory that tensors are spilled to."""
        return self.timeline.bytes_out + self.timeline.bytes_back


def one_lane(costs: Costs) -> Costs:
    """Return the costs of a link that carries one tensor at a time, as our runtime does."""
    return replace(costs, link=replace(costs.link, duplex=False))


def trade(
    given: Candidate,
    policy: Policy,
    budget: Budget,
    costs: Costs,
    rules: Rules,
    place: Placer,
    should_stop: ShouldStop = never,
) -> Candidate:
    """Return a program that a policy made of a lowered one, whose plan fits a budget.

    A policy counts bytes before storage is shared. It is first asked for as much more than the
    budget as sharing saves in the program as it is, and then for less until the plan fits.

    Args:
        given: A lowered program in its final order.
        policy: Decides which steps are recomputed and which tensors are spilled.
        budget: Budget of the arena; a percentage is of the height of the given program.
        costs: How quick the machine is; `one_lane` makes those of our runtime.

    Returns:
        The program with a note, its time and that of the whole program simulated.

    Raises:
        UnmetBudgetError: The policy does not get as low.
        UnsupportedProgramError: It does not handle the program, or makes steps that our runtime
            does not run.
        DifferentValuesError: The program it makes computes other values.
        InvalidTimelineError: The simulated run is not one of the program.
    """
    program = given.unshared
    limit = budget.bytes_of(given.height)
    whole = replace(given.whole, seconds=simulate(given.whole.unshared, costs).seconds)
    target = None if limit is None else max(1, limit * peak_of(program) // max(1, given.height))
    lowest: int | None = None
    for _ in range(_ATTEMPTS):
        try:
            made = _made(program, policy, Budget(target), costs, should_stop)
        except UnmetBudgetError as error:
            if limit is None:
                raise
            if should_stop():
                reason = "the search was stopped"
                raise UnmetBudgetError(policy.name, limit, error.least, reason) from error
            target = None  # by its own count; once storage is shared its program may fit
            made = _made(program, policy, LEAST, costs, should_stop)
        timeline = simulate(made, costs)
        num_rounded = 0 if is_exact(policy) else (_conversions(made) - _conversions(program)) // 2
        num_repeated = _num_repeated(program, made) - 2 * num_rounded
        note = Rescheduled(policy.name, timeline, num_repeated, num_rounded)
        found = Candidate.of(made, rules, place, timeline.seconds, whole, (*given.notes, note))
        if limit is None or found.height <= limit:
            check_timeline(made, costs, timeline)
            return found
        lowest = found.height if lowest is None else min(lowest, found.height)
        if target is None or should_stop():
            break
        target = max(1, min(target - 1, peak_of(made) * limit // found.height))
    assert lowest is not None
    assert limit is not None
    raise UnmetBudgetError(policy.name, limit, lowest)


def _made(
    program: Program, policy: Policy, budget: Budget, costs: Costs, should_stop: ShouldStop
) -> Program:
    """Return the program of a policy, with steps of our runtime only."""
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
    others = sum(isinstance(step.operator, PackBits | UnpackBits | Wait) for step in computing)
    return len(computing) - others - len(program.steps)
