from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import InfeasibleError, SearchLimitError, UnsupportedProblemError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan, SharedObjects
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import StrategyKind, run
from arenite.planner.placement.verification import verify
from arenite.planner.tensors import Memory
from arenite.strategies import known
from support.problems import problems_in_memories


def records(*memories):
    return tuple(
        UsageRecord(f"r{index}", 8, 0, 2, memory=memory) for index, memory in enumerate(memories)
    )


MEMORIES = (Memory("fast"), Memory("slow"), Memory("unused"))
PROBLEM = Problem(records("slow", "fast", "slow"), memories=MEMORIES)


@dataclass(frozen=True, slots=True)
class Stack:
    """Lays each record on the one before, a byte too high at first."""

    name: ClassVar[str] = "stack"
    kind: ClassVar[StrategyKind] = StrategyKind.OBJECTS
    complexity: ClassVar[str] = "n"
    source: ClassVar[str] = "this test"
    quick: ClassVar[bool] = True
    refused: str | None = None

    def why_unsupported(self, problem):
        return self.refused if problem.memories[0].name == "slow" else None

    def __call__(self, problem):
        return self.search(problem, lambda _best, _bound: False)

    def search(self, problem, watch):
        assert len(problem.memories) == 1
        if problem.capacity is not None and problem.lower_bound > problem.capacity:
            raise InfeasibleError(problem.capacity, problem.lower_bound)
        offsets = tuple(8 * index for index in range(len(problem.records)))
        first = Plan.of(problem, tuple(offset + 1 for offset in offsets), self.name)
        if watch(first, first.lower_bound):
            return first
        objects = SharedObjects(tuple(range(len(offsets))), (8,) * len(offsets), 8 * len(offsets))
        parameters = {"records": len(offsets)} if self.refused else {}
        return Plan.of(problem, offsets, self.name, parameters, objects=objects)


def test_each_memory_is_planned_by_itself_and_the_plans_are_merged():
    plan = run(Stack(), PROBLEM)
    verify(PROBLEM, plan)
    assert (plan.offsets, plan.heights, plan.lower_bounds) == ((0, 0, 8), (8, 16, 0), (8, 16, 0))
    assert (plan.height, plan.lower_bound, plan.optimal) == (24, 24, True)
    assert (plan.strategy, plan.parameters) == ("stack", {})
    assert plan.objects == SharedObjects((1, 0, 2), (8, 8, 8), 24)


def test_the_watch_sees_the_plan_of_all_memories_once_each_has_one():
    seen = []

    def watch(best, lower_bound):
        seen.append((None if best is None else best.heights, lower_bound))
        return False

    run(Stack(), PROBLEM, watch)
    assert seen == [(None, 24), (None, 24), ((8, 16, 0), 24)]


@dataclass(frozen=True, slots=True)
class Modest(Stack):
    """Says nothing of the bound."""

    def search(self, problem, watch):
        return Stack.search(self, problem, lambda best, _bound: watch(best, 0))


def test_the_bound_told_is_never_below_the_problems_own():
    bounds = []
    run(Modest(), PROBLEM, lambda _best, bound: bool(bounds.append(bound)))
    assert bounds == [24, 24, 24]


def test_a_plan_is_optimal_only_if_it_is_so_in_each_memory():
    assert Plan((), (8, 16), "mine", (8, 16)).optimal
    assert not Plan((), (16, 8), "mine", (8, 16)).optimal


def test_a_search_that_is_stopped_takes_the_first_plan_for_what_is_left():
    told = []

    def stop_once(best, lower_bound):
        told.append(best)
        return len(told) == 1

    plan = run(Stack(), PROBLEM, stop_once)
    verify(PROBLEM, plan)
    assert plan.heights == (9, 17, 0)
    assert told == [None]


def test_one_memory_is_handed_over_as_it_is():
    problem = Problem.of(records("arena"))
    assert run(Stack(), problem) == Stack()(problem)


def test_parameters_that_differ_between_memories_say_whose_they_are():
    plan = Plan.merged(
        Problem(records("fast", "slow"), memories=MEMORIES[:2]),
        [Plan((0,), (8,), "one", (8,), {"seed": 1}), Plan((0,), (8,), "other", (8,), {"seed": 2})],
    )
    assert (plan.strategy, plan.parameters) == ("one + other", {"fast.seed": 1, "slow.seed": 2})


def test_a_memory_that_is_too_small_is_named():
    problem = replace(PROBLEM, memories=(Memory("fast", 8), Memory("slow", 15), MEMORIES[2]))
    with pytest.raises(InfeasibleError, match="fits 15 B in memory 'slow': every plan needs"):
        run(Stack(), problem)


def test_a_strategy_that_cannot_handle_one_of_the_memories_is_refused():
    with pytest.raises(UnsupportedProblemError, match="takes no slow memory"):
        run(Stack("takes no slow memory"), PROBLEM)


@given(problems_in_memories(max_records=8), st.sampled_from(["greedy-by-size", "best"]))
def test_our_strategies_plan_several_memories(problem, name):
    plan = run(known()[name], problem)
    verify(problem, plan)
    for number, part in enumerate(problem.by_memory()):
        assert run(known()[name], part).height == plan.heights[number]


def test_a_bound_for_one_memory_cannot_be_given_for_several():
    with pytest.raises(ValueError, match="2 memories"):
        Plan.of(Problem((), memories=MEMORIES[:2]), (), "mine", lower_bound=8)


STAIRS = (Stair(0, 8, 0, 1), Stair(8, 8, 0, 2))
OUTLINED = Problem((UsageRecord("image", 16, 0, 2, outline=STAIRS), UsageRecord("row", 8, 1, 2)))


@dataclass(frozen=True, slots=True)
class Rectangles(Stack):
    """Takes every record for a rectangle, and asserts that it sees no other."""

    def search(self, problem, watch):
        assert not problem.has_outlines
        best = Plan.of(problem, (0, 16), self.name, {"seed": 1})
        assert best.optimal
        if watch(best, best.lower_bound):
            return best
        if problem.capacity is not None and problem.capacity < 24:
            raise InfeasibleError(problem.capacity, 24)
        return best


@dataclass(frozen=True, slots=True)
class Outlines(Stack):
    """Lays the row into what the image leaves free."""

    knows_outlines: ClassVar[bool] = True

    def search(self, problem, watch):
        return Plan.of(problem, (0, 0), self.name)


def test_a_strategy_that_knows_rectangles_is_given_them_and_its_bound_is_not_taken():
    seen = []

    def watch(best, lower_bound):
        seen.append((best.lower_bound, lower_bound))
        return False

    plan = run(Rectangles(), OUTLINED, watch)
    verify(OUTLINED, plan)
    assert (plan.height, plan.lower_bound, plan.optimal) == (24, 16, False)
    assert (plan.strategy, plan.parameters) == ("stack", {"seed": 1})
    assert seen == [(16, 16)]


def test_a_strategy_that_knows_outlines_is_given_them():
    plan = run(Outlines(), OUTLINED)
    verify(OUTLINED, plan)
    assert (plan.height, plan.optimal) == (16, True)


def test_what_is_impossible_for_rectangles_may_be_possible():
    with pytest.raises(
        SearchLimitError, match=r"as whole rectangles; .* 16 B are needed"
    ) as found:
        run(Rectangles(), OUTLINED.with_capacity(20))
    assert found.value.capacity == 20
    with pytest.raises(InfeasibleError) as caught:
        run(Rectangles(), OUTLINED.with_capacity(15))
    assert (caught.value.capacity, caught.value.lower_bound) == (15, 16)
