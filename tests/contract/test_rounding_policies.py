"""What policies that round owe their user: all that others do, but for the last bits."""

import numpy as np
import pytest

from arenite.pipeline.making.trading import Rescheduled
from arenite.pipeline.targets.compiling import Lowered
from arenite.planner.errors import DifferentValuesError, UnmetBudgetError
from arenite.planner.programs.costs import LEAST, Budget
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.policy import AnytimePolicy, Policy, is_exact
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.timing import check_timeline, simulate
from arenite.runtime import Session
from arenite.strategies import find_policy, known_policies
from support.running import PoisonedSession
from support.trading import COSTS, assembled, lowered_step, pieces_of, some_feeds, traded

TOLERANCE = 1e-3
"""Of the largest number of a tensor: fp16 has 11 bits, so rounds by a 2,048th at most."""

ROUNDING = [policy for policy in known_policies().values() if not is_exact(policy)]

every_policy = pytest.mark.parametrize(
    "policy", [pytest.param(policy, id=policy.name) for policy in ROUNDING]
)


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Lowered:
    return lowered_step(tmp_path_factory.mktemp("step"))


@every_policy
def test_it_keeps_the_budget_and_the_planned_peak_and_computes_what_it_did_rounded(
    policy: Policy, lowered: Lowered
) -> None:
    program = lowered.program
    for budget in (Budget(85, is_percent=True), LEAST):
        made = policy(program, budget, COSTS)
        limit = budget.bytes_of(peak_of(program))
        assert limit is None or peak_of(made) <= limit
        timeline = simulate(made, COSTS)
        check_timeline(made, COSTS, timeline)
        assert timeline.peaks[program.memories[0].name] == peak_of(made) < peak_of(program)
        check_same_values(program, made, rounded=True)
        with pytest.raises(DifferentValuesError):
            check_same_values(program, made)
        assert policy(program, budget, COSTS).steps == made.steps


@every_policy
def test_it_leaves_what_fits_and_says_how_low_it_gets(policy: Policy, lowered: Lowered) -> None:
    program = lowered.program
    assert policy(program, Budget(peak_of(program)), COSTS) is program
    with pytest.raises(UnmetBudgetError) as caught:
        policy(program, Budget(16), COSTS)
    assert caught.value.policy == policy.name
    assert caught.value.least == peak_of(policy(program, LEAST, COSTS))
    assert isinstance(policy, AnytimePolicy)
    check_same_values(program, policy.search(program, LEAST, COSTS, lambda: True), rounded=True)


@every_policy
def test_the_loss_and_states_are_within_the_tolerance(policy: Policy, lowered: Lowered) -> None:
    whole = traded(lowered, find_policy("sqrt"), Budget(100, is_percent=True))
    found = traded(lowered, policy, Budget(85, is_percent=True))
    note, before = found.note(Rescheduled), whole.note(Rescheduled)
    assert note is not None
    assert before is not None
    assert note.num_rounded > 0 == before.num_rounded == note.num_repeated
    assert found.height < whole.height
    pieces = pieces_of(assembled(lowered, found))
    with Session.of_pieces(pieces_of(assembled(lowered, whole)), "whole") as one:
        feeds = some_feeds(one.inputs)
        with Session.of_pieces(pieces, "rounded") as other:
            losses = [session.run(feeds)["loss"].copy() for session in (one, other)]
            before, after = (
                {name: state.copy() for name, state in session.states.items()}
                for session in (one, other)
            )
    assert np.abs(losses[1] - losses[0]) <= TOLERANCE * np.abs(losses[0])
    differences = []
    for name, state in before.items():
        differences.append(float(np.abs(after[name] - state).max() / np.abs(state).max()))
    assert 0 < max(differences) <= TOLERANCE
    with PoisonedSession(pieces) as session:
        assert session.run(feeds)["loss"].tobytes() == losses[1].tobytes()


def test_what_rounds_says_so() -> None:
    assert [policy.name for policy in ROUNDING] == ["gist-fp16"]
    for policy in ROUNDING:
        assert find_policy(policy.name) == policy
        assert "not exact" in policy.decides
