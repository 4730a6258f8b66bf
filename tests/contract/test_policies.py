"""What every policy of the table owes its user."""

from itertools import chain, repeat

import pytest

from arenite.planner.errors import (
    MissingDependencyError,
    UnmetBudgetError,
    UnsupportedProgramError,
)
from arenite.planner.programs.costs import LEAST, Budget, Costs, Link
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.ordering import never
from arenite.planner.programs.policy import AnytimePolicy, Policy, is_exact
from arenite.planner.programs.program import Port, Program
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import DType, Tensor
from arenite.planner.timing import check_timeline, simulate
from arenite.strategies import find_policy, known_policies
from arenite.strategies.schedules import spilling
from support.training_programs import results, training_program

QUICK_LINK = Costs(1e9, 1e9, Link(1e9, 1e9))
SLOW_LINK = Costs(1e9, 1e9, Link(2e7, 4e7, 1e-6, duplex=False))
BUDGETS = (Budget(85, is_percent=True), Budget(60, is_percent=True), LEAST)
SEEDS = range(6)

EXACT = [policy for policy in known_policies().values() if is_exact(policy)]

every_policy = pytest.mark.parametrize(
    "policy", [pytest.param(policy, id=policy.name) for policy in EXACT]
)


def fitted(policy: Policy, program: Program, budget: Budget, costs: Costs) -> Program | None:
    """Return what the policy makes of a program; None if it refuses it with a reason."""
    try:
        return policy(program, budget, costs)
    except UnmetBudgetError as error:
        limit = budget.bytes_of(peak_of(program))
        if (error.policy, error.budget) != (policy.name, limit) or error.least <= error.budget:
            raise
    except UnsupportedProgramError as error:
        if error.policy != policy.name:
            raise
    except MissingDependencyError as error:
        pytest.skip(str(error))
    return None


@every_policy
@pytest.mark.parametrize("costs", [QUICK_LINK, SLOW_LINK], ids=["quick link", "slow link"])
def test_a_policy_keeps_the_budget_the_outputs_and_the_planned_peak(
    policy: Policy, costs: Costs
) -> None:
    num_fitted = 0
    for seed in SEEDS:
        program = training_program(seed)
        expected = results(program)
        for budget in BUDGETS:
            made = fitted(policy, program, budget, costs)
            if made is None:
                continue
            num_fitted += 1
            limit = budget.bytes_of(peak_of(program))
            assert limit is None or peak_of(made) <= limit
            timeline = simulate(made, costs)
            check_timeline(made, costs, timeline)
            assert timeline.peaks["arena"] == peak_of(made)
            check_same_values(program, made)
            assert results(made) == expected
            assert results(made, lazy=True) == expected
    assert num_fitted


@every_policy
def test_the_same_program_gives_the_same_program(policy: Policy) -> None:
    program = training_program(3)
    for budget in BUDGETS:
        one = fitted(policy, program, budget, QUICK_LINK)
        other = fitted(policy, program, budget, QUICK_LINK)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.steps == other.steps
            assert list(one.tensors) == list(other.tensors)


@every_policy
def test_a_program_that_fits_is_left_as_it_is(policy: Policy) -> None:
    program = training_program(1)
    budget = Budget(peak_of(program))
    made = fitted(policy, program, budget, QUICK_LINK)
    assert made is program


@every_policy
def test_nothing_goes_below_the_largest_working_set(policy: Policy) -> None:
    with pytest.raises((UnmetBudgetError, UnsupportedProgramError, MissingDependencyError)):
        policy(training_program(2), Budget(16), QUICK_LINK)


@pytest.mark.parametrize(
    "name", ["offload-prefetch", "meng-sun", "modnn", "superneurons-speed", "superneurons-memory"]
)
def test_spills_that_miss_the_budget_in_time_are_not_timed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = training_program(0)
    policy = known_policies().get(name)
    if not isinstance(policy, AnytimePolicy):
        pytest.skip(f"{name} is not registered in this installation")
    limit = peak_of(program) // 2
    clock = chain([False], repeat(True))

    def unwanted(*_: object) -> None:
        pytest.fail("the time is up")

    monkeypatch.setattr(spilling, "time_spills", unwanted)
    with pytest.raises(UnmetBudgetError) as caught:
        policy.search(program, Budget(limit), QUICK_LINK, lambda: next(clock))
    assert (caught.value.policy, caught.value.budget) == (name, limit)
    assert limit < caught.value.least <= peak_of(program)


@pytest.mark.parametrize("name", known_policies())
def test_a_program_without_steps_is_as_low_as_it_gets(name: str) -> None:
    given = Tensor("x", DType.UINT8, (100,))
    program = Program("none", {"x": given}, (), (Port("x", "x"),), (Port("y", "x"),))
    policy = find_policy(name)
    try:
        made = policy(program, LEAST, QUICK_LINK)
    except (UnsupportedProgramError, MissingDependencyError) as error:
        pytest.skip(str(error))
    assert made.steps == ()
    timeline = simulate(made, QUICK_LINK)
    assert timeline.peaks["arena"] == peak_of(made)
    check_timeline(made, QUICK_LINK, timeline)
    with pytest.raises(UnmetBudgetError) as caught:
        policy(program, Budget(16), QUICK_LINK)
    assert caught.value.least == peak_of(program)


@every_policy
def test_a_policy_that_is_stopped_at_once_still_answers(policy: Policy) -> None:
    assert isinstance(policy, AnytimePolicy)
    program = training_program(5)
    try:
        made = policy.search(program, LEAST, QUICK_LINK, lambda: True)
    except (UnsupportedProgramError, MissingDependencyError) as error:
        pytest.skip(str(error))
    check_same_values(program, made)


@every_policy
def test_a_policy_says_what_it_is(policy: Policy) -> None:
    assert policy.source
    assert policy.decides
    assert never() is False


def test_names_are_unique() -> None:
    names = [policy.name for policy in EXACT]
    assert len(set(names)) == len(names) == 21
