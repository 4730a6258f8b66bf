"""Every policy on a model, at every budget: what it needs, what it costs, how long it thinks."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.observing import Search, SearchLimits
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.banded import banded_results
from arenite.pipeline.comparison.policy_results import ModelPolicies, PolicyResult
from arenite.pipeline.making.costs import StatedCosts
from arenite.pipeline.targets.table import GENERIC
from arenite.planner.budget import Budget
from arenite.planner.costs import Costs
from arenite.planner.diagnosis import diagnose
from arenite.planner.equivalence import check_same_values
from arenite.planner.errors import (
    AreniteError,
    DifferentValuesError,
    InvalidTimelineError,
    ModelError,
    UnmetBudgetError,
)
from arenite.planner.memory import Memory
from arenite.planner.ordering import ShouldStop
from arenite.planner.policy import AnytimePolicy, Policy, is_exact
from arenite.planner.program import COMPUTE, Program
from arenite.planner.report import FailedModel
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.rewrites.rescheduling import peak_of, problem_of
from arenite.planner.tensors import TensorKind
from arenite.planner.timing import check_timeline, simulate
from arenite.strategies import find_policy, known_policies

STATES = "states"
"""Memory that states are put in: no policy can do anything about them."""


@dataclass(frozen=True, slots=True)
class PolicyContest:
    """What is compared.

    Attributes:
        budgets: Budgets of each policy.
        stated: How quick the machine is.
        policies: What is compared.
        limits: Limits of each policy, and its observer.
        with_bands: Whether models without states are run in bands of rows too.
    """

    budgets: tuple[Budget, ...]
    stated: StatedCosts
    policies: tuple[Policy, ...]
    limits: SearchLimits
    with_bands: bool = False


def chosen_policies(requested: Sequence[str], *, quick: bool) -> tuple[Policy, ...]:
    """Return the policies asked for, or all, in the order of the table.

    Those that round are compared where they are asked for.
    """
    every = known_policies().values()
    wanted = {find_policy(each).name for each in requested} or {
        each.name for each in every if is_exact(each)
    }
    return tuple(each for each in every if each.name in wanted and (each.quick or not quick))


def compare_policies(
    paths: Sequence[Path], reading: Reading, fitting: PolicyContest
) -> tuple[list[ModelPolicies], list[FailedModel]]:
    """Return what policies make of models, and the models that cannot be compared.

    Raises:
        OptionsError: The reading asks for what policies cannot keep.
    """
    if reading.target not in (None, GENERIC.name):
        raise OptionsError(f"--budget compares the graph as written, --target {GENERIC.name}")
    models: list[ModelPolicies] = []
    failures: list[FailedModel] = []
    for path in paths:
        try:
            models.append(_compared(path, reading, fitting))
        except (AreniteError, OSError) as error:
            failures.append(FailedModel(str(path), str(error)))
            reading.limits.observer.complain(str(error))
    return models, failures


def read_program(path: Path, reading: Reading) -> Program:
    """Return the graph as written, its views shared and its states in a memory of their own.

    Raises:
        ModelError: It cannot be read, or has no graph.
    """
    views = replace(
        reading,
        target=GENERIC.name,
        aliases=(AliasKind.VIEWS,),
        order_name=reading.order_name or "given",
    )
    program = GENERIC.read(views, path, None).program
    if program is None:
        raise ModelError("it has records and no steps that could run again", path=path)
    tensors = {
        each.name: replace(each, memory=STATES) if each.kind is TensorKind.STATE else each
        for each in program.tensors.values()
    }
    if not any(each.memory == STATES for each in tensors.values()):
        return program
    return replace(program, tensors=tensors, memories=(*program.memories, Memory(STATES)))


def _compared(path: Path, reading: Reading, fitting: PolicyContest) -> ModelPolicies:
    program = read_program(path, reading)
    timeline = simulate(program, fitting.stated.costs)
    problem = problem_of(program)
    workplace = program.memories[0].name
    own = replace(
        problem, records=tuple(each for each in problem.records if each.memory == workplace)
    )
    diagnosis = diagnose(program, own)
    results = list(_results(program, timeline.seconds, fitting))
    if fitting.with_bands and not _has_states(program):
        results += banded_results(
            path,
            reading,
            fitting.budgets,
            peak_of(program),
            fitting.stated.costs,
            fitting.limits,
        )
    return ModelPolicies(
        str(path),
        len(program.steps),
        peak_of(program),
        diagnosis.largest_working_set,
        timeline.seconds,
        fitting.stated,
        diagnosis.advice,
        tuple(results),
    )


def _has_states(program: Program) -> bool:
    return any(each.kind is TensorKind.STATE for each in program.tensors.values())


def _results(program: Program, seconds: float, fitting: PolicyContest) -> Iterator[PolicyResult]:
    limits = fitting.limits
    count = len(fitting.budgets) * len(fitting.policies)
    pairs = [(budget, policy) for budget in fitting.budgets for policy in fitting.policies]
    for done, (budget, policy) in enumerate(pairs):
        with limits.observer.searching(policy.name, "program") as search:
            search.show(f"{done}/{count} {policy.name} at {budget}")
            stop = _stop(limits.is_over(), search)
            yield _result(policy, budget, program, seconds, fitting.stated.costs, stop)


def _stop(is_over: ShouldStop, search: Search) -> ShouldStop:
    return lambda: search.should_stop() or is_over()


def _result(
    policy: Policy,
    budget: Budget,
    program: Program,
    seconds: float,
    costs: Costs,
    should_stop: ShouldStop,
) -> PolicyResult:
    begin = time.perf_counter()
    result = PolicyResult(
        policy.name, str(budget), budget.bytes_of(peak_of(program)), rounds=not is_exact(policy)
    )
    try:
        if isinstance(policy, AnytimePolicy):
            made = policy.search(program, budget, costs, should_stop)
        else:
            made = policy(program, budget, costs)
    except UnmetBudgetError as error:
        took = time.perf_counter() - begin
        return replace(result, reached=error.reached, decide_s=took, reason=str(error))
    except AreniteError as error:
        return replace(result, decide_s=time.perf_counter() - begin, reason=str(error))
    took = time.perf_counter() - begin
    timeline = simulate(made, costs)
    try:
        check_timeline(made, costs, timeline)
        check_same_values(program, made, rounded=result.rounds)
    except (DifferentValuesError, InvalidTimelineError) as error:
        reason = f"made a wrong program: {error}"
        return replace(result, decide_s=took, reason=reason, wrong=True)
    return replace(
        result,
        peak=timeline.peaks[made.memories[0].name],
        extra_time=timeline.seconds / seconds - 1 if seconds else 0.0,
        seconds=timeline.seconds,
        stalled_s=timeline.stalled_s(COMPUTE),
        bytes_out=timeline.bytes_out,
        bytes_back=timeline.bytes_back,
        num_repeated=_num_repeated(program, made),
        decide_s=took,
    )


def _num_repeated(program: Program, made: Program) -> int:
    """Return how many steps run besides those of the program, the moves and the waits."""
    besides = sum(
        1
        for step in made.steps
        if step.lane == COMPUTE and step.operator.bytes_touched(made.operands(step))
    )
    before = sum(
        1 for step in program.steps if step.operator.bytes_touched(program.operands(step))
    )
    return max(0, besides - before)
