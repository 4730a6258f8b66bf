"""Training steps that policies rewrote: the same bits, in the arena that was planned."""

from dataclasses import dataclass, field
from functools import partial

import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.trading import Rescheduled, trade
from arenite.pipeline.targets.compiling import lower_model, rules
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.placement.strategy import run
from arenite.planner.programs.costs import LEAST, Budget
from arenite.planner.rewrites.candidate import Candidate
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import SPILLED
from arenite.runtime import Session
from arenite.strategies import find, find_policy
from support.running import PoisonedSession
from support.tiny_onnx import parse, save
from support.trading import (
    COSTS,
    assembled,
    lowered_step,
    pieces_of,
    some_feeds,
    step_file,
    traded,
)

POLICIES = ("sqrt", "greedy-chains", "joint", "offload-prefetch")
NUM_RUNS = 3


@pytest.fixture(scope="module")
def lowered(tmp_path_factory):
    """The training step of a small network."""
    return lowered_step(tmp_path_factory.mktemp("step"))


def bits(session, feeds):
    """Return all bits that some runs make, those of the states at last."""
    runs = [session.run(feeds) for _ in range(NUM_RUNS)]
    states = session.states if isinstance(session, Session) else {}
    return [{name: array.tobytes() for name, array in each.items()} for each in (*runs, states)]


@pytest.fixture(scope="module")
def whole(lowered):
    """The bits of the step as it is, and its inputs."""
    found = traded(lowered, find_policy("sqrt"), Budget(100, is_percent=True))
    with Session.of_pieces(pieces_of(assembled(lowered, found)), "whole") as session:
        feeds = some_feeds(session.inputs)
        return session.arena_bytes, feeds, bits(session, feeds)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("budget", [Budget(85, is_percent=True), LEAST], ids=str)
def test_what_a_policy_makes_runs_in_the_arena_of_its_plan(lowered, whole, policy, budget):
    height, feeds, expected = whole
    found = traded(lowered, find_policy(policy), budget)
    pieces = pieces_of(assembled(lowered, found))
    with Session.of_pieces(pieces, policy) as session:
        assert session.arena_bytes == found.height < height
        spilled = [memory.size for memory in session.memories if memory.spilled]
        assert sum(spilled) == found.spilled
        assert bool(spilled) == bool(found.note(Rescheduled).timeline.bytes_out)
        assert bits(session, feeds) == expected
    with PoisonedSession(pieces) as session:
        assert bits(session, feeds)[0] == expected[0]


def test_what_swaps_moves_and_what_recomputes_runs_steps_again(lowered):
    swapped = traded(lowered, find_policy("offload-prefetch"), LEAST)
    assert swapped.spilled
    note = swapped.note(Rescheduled)
    assert note.timeline.bytes_back >= note.timeline.bytes_out > 0
    assert note.num_repeated == 0
    assert SPILLED in {memory.name for memory in swapped.derivation.problem.memories}
    again = traded(lowered, find_policy("greedy-chains"), LEAST)
    assert not again.spilled
    assert again.note(Rescheduled).num_repeated > 0
    assert again.slowdown > 0


def test_a_budget_out_of_reach_says_how_far_it_came(lowered):
    with pytest.raises(UnmetBudgetError) as caught:
        traded(lowered, find_policy("greedy-chains"), Budget(64))
    least = traded(lowered, find_policy("greedy-chains"), LEAST)
    assert (caught.value.budget, caught.value.least) == (64, least.height)


def test_a_budget_that_is_met_once_storage_is_shared_is_met(lowered):
    """A policy counts bytes before that, and says that it comes to more."""
    least = traded(lowered, find_policy("greedy-chains"), LEAST)
    found = traded(lowered, find_policy("greedy-chains"), Budget(least.height))
    assert found.height <= least.height


def test_a_program_without_bytes_fits_any_budget(tmp_path):
    model = save(tmp_path, parse("(float[0,3] x) => (y) { y = Relu(x) }"))
    found = traded(lower_model(model), find_policy("sqrt"), Budget(1))
    assert found.height == 0


@dataclass(frozen=True)
class Unmoved:
    """A policy that leaves a program as it is, and refuses any budget if told so."""

    refuses: bool
    asked: list[Budget] = field(default_factory=list)
    name: str = "unmoved"
    source: str = "none"
    decides: str = "nothing"
    quick: bool = True

    def why_unsupported(self, program):
        return None

    def __call__(self, program, budget, costs):
        self.asked.append(budget)
        if self.refuses and budget != LEAST:
            raise UnmetBudgetError(self.name, 1, peak_of(program))
        return program


@pytest.mark.parametrize("refuses", [True, False])
def test_no_attempt_begins_once_the_time_is_up(lowered, refuses):
    policy, place = Unmoved(refuses), partial(run, find("best"))
    given = Candidate.of(lowered.program, rules(), place, 0.0)
    budget = given.height // 2
    with pytest.raises(UnmetBudgetError) as caught:
        trade(given, policy, Budget(budget), COSTS, rules(), place, lambda: True)
    assert len(policy.asked) == 1
    assert caught.value.budget == budget


def test_a_second_order_is_not_tried_once_the_time_is_up(tmp_path, monkeypatch):
    """The order that is searched is another than the model's."""
    fitting = Fitting(step_file(tmp_path), Reading())
    assert fitting.program != fitting.lowered.program
    monkeypatch.setattr(fitting, "_is_over", lambda: True)
    policy = Unmoved(refuses=True)
    with pytest.raises(UnmetBudgetError):
        fitting.within(Budget(fitting.whole.height // 2), None, policy)
    assert len(policy.asked) == 1
