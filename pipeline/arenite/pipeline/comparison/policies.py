"""Policies compared on a model at several budgets, bands of rows beside them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.observing import Search, SearchLimits
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.costs import FLOAT, MachineCosts, StatedCosts, in_speeds
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.report.results import FailedModel
from arenite.pipeline.targets.choice import GENERIC
from arenite.planner import (
    AliasKind,
    AreniteError,
    Budget,
    Candidate,
    Costs,
    Memory,
    Policy,
    Program,
    ShouldStop,
    TensorKind,
    diagnose,
)
from arenite.planner.errors import (
    DifferentValuesError,
    InvalidTimelineError,
    ModelError,
    UnmetBudgetError,
)
from arenite.planner.operators import Narrow, Pack, Unpack, Widen
from arenite.planner.programs import (
    COMPUTE,
    AnytimePolicy,
    assumption_of,
    check_same_values,
    is_exact,
)
from arenite.planner.rewrites import peak_of, problem_of
from arenite.planner.timing import check_timeline, simulate
from arenite.strategies import find_policy, known_policies

ROUNDED = "keeps tensors as 16-bit floats meanwhile: the outputs are not the same to the bit"
"""The note on a policy that rounds."""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What one policy made of a model at one budget; figures are None where it made nothing.

    Attributes:
        budget: The budget, as it was asked for.
        limit: The budget in bytes; None for the least.
        peak: Most bytes live at once in the memory that steps compute in.
        extra_time: Part of the time without a policy that is added.
        seconds: Predicted time of a run.
        stalled_s: Predicted time in which nothing computes.
        bytes_out: Bytes that cross the link outwards.
        bytes_back: Bytes that come back.
        num_repeated: Steps that run again.
        decide_s: Seconds that the policy took.
        reached: The fewest bytes it came to, where that is not within the budget.
        reason: Why it made nothing, if it did not.
        rounds: Whether outputs are not the same to the bit.
        wrong: Whether what it made does not stand the checks.
        assumes: What its bytes and times assume, if no program keeps it.
    """

    policy: str
    budget: str
    limit: int | None
    peak: int | None = None
    extra_time: float | None = None
    seconds: float | None = None
    stalled_s: float | None = None
    bytes_out: int | None = None
    bytes_back: int | None = None
    num_repeated: int | None = None
    decide_s: float = 0.0
    reached: int | None = None
    reason: str = ""
    rounds: bool = False
    wrong: bool = False
    assumes: str = ""


@dataclass(frozen=True, slots=True)
class ModelPolicies:
    """What all policies made of a model.

    Attributes:
        peak: Most bytes live at once without a policy.
        working_set: Bytes of the largest step: no policy gets lower.
        seconds: Predicted time without a policy.
        stated: What predicts times.
        advice: What binds the peak.
        results: By budget, then by policy.
    """

    model: str
    num_steps: int
    peak: int
    working_set: int
    seconds: float
    stated: StatedCosts
    advice: str
    results: tuple[PolicyResult, ...]

    @property
    def whose(self) -> str:
        """Whose speeds predict times, in words."""
        link = in_speeds(self.stated.costs.link)
        return f"{self.stated.words}; link {link}, {self.stated.link_origin}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be known of the figures of some policies."""
        rounding = {each.policy: ROUNDED for each in self.results if each.rounds}
        assuming = {each.policy: each.assumes for each in self.results if each.assumes}
        return tuple(
            f"{name}: {text}" for each in (rounding, assuming) for name, text in each.items()
        )

    def as_json(self) -> dict[str, object]:
        """Return the figures."""
        link = self.stated.costs.link
        return {
            "model": self.model,
            "steps": self.num_steps,
            "peak": self.peak,
            "working_set": self.working_set,
            "seconds": self.seconds,
            "costs": self.stated.words,
            "link": {
                "out_bytes_per_s": link.out,
                "back_bytes_per_s": link.back,
                "origin": self.stated.link_origin,
            },
            "results": [asdict(result) for result in self.results],
        }


BANDS = "bands"


def banded_results(
    path: Path, reading: Reading, budgets: Sequence[Budget], peak: int, costs: Costs
) -> Iterator[PolicyResult]:
    """Yield what bands make of a model, a result a budget; why not, where our runtime cannot.

    Args:
        peak: Bytes that budgets of a percentage are of.
    """
    plans = [PolicyResult(BANDS, str(budget), budget.bytes_of(peak)) for budget in budgets]
    limits = reading.limits
    if limits.time_limit_s is not None:
        limits = replace(limits, time_limit_s=limits.time_limit_s * len(budgets))
    own = replace(reading, target=None, limits=limits)
    begin = time.perf_counter()
    try:
        fitting = Fitting(path, own, MachineCosts("costs that are stated", {FLOAT: costs}))
    except AreniteError as error:
        for each in plans:
            yield replace(each, decide_s=time.perf_counter() - begin, reason=str(error))
        return
    for each in plans:
        try:
            fit = _fit(fitting, each.limit)
        except UnmetBudgetError as error:
            result = replace(each, reached=error.least, reason=str(error))
        else:
            result = replace(
                each, peak=fit.height, extra_time=fit.slowdown, seconds=fit.seconds,
                stalled_s=0.0, bytes_out=0, bytes_back=0, num_repeated=0,
            )  # fmt: skip
        yield replace(result, decide_s=time.perf_counter() - begin)
        begin = time.perf_counter()


def _fit(fitting: Fitting, limit: int | None) -> Candidate:
    """Return the quickest program within a limit, or the least."""
    if limit is None:
        return fitting.frontier()[-1]
    return fitting.within(Budget(limit), None)


STATES = "states"
"""Memory that states are put in: no policy can do anything about them."""


@dataclass(frozen=True, slots=True)
class PolicyContest:
    """A comparison of policies on one model.

    Attributes:
        stated: How quick the machine is.
        with_bands: Whether models without states are run in bands of rows too.
    """

    budgets: tuple[Budget, ...]
    stated: StatedCosts
    policies: tuple[Policy, ...]
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
        raise OptionsError(f"--policies compares the graph as written, --target {GENERIC.name}")
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
        raise ModelError("a CSV lists records only; policies need the steps of a model", path=path)
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
    results = list(_results(program, timeline.seconds, fitting, reading.limits))
    if fitting.with_bands and not _has_states(program):
        results += banded_results(
            path, reading, fitting.budgets, peak_of(program), fitting.stated.costs
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


def _results(
    program: Program, seconds: float, fitting: PolicyContest, limits: SearchLimits
) -> Iterator[PolicyResult]:
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
        policy.name, str(budget), budget.bytes_of(peak_of(program)),
        rounds=not is_exact(policy), assumes=assumption_of(policy),
    )  # fmt: skip
    try:
        if isinstance(policy, AnytimePolicy):
            made = policy.search(program, budget, costs, should_stop)
        else:
            made = policy(program, budget, costs)
    except UnmetBudgetError as error:
        took = time.perf_counter() - begin
        return replace(result, reached=error.least, decide_s=took, reason=str(error))
    except AreniteError as error:
        return replace(result, decide_s=time.perf_counter() - begin, reason=str(error))
    took = time.perf_counter() - begin
    timeline = simulate(made, costs)
    try:
        check_timeline(made, costs, timeline)
        check_same_values(program, made, rounded=result.rounds)
    except (DifferentValuesError, InvalidTimelineError) as error:
        reason = f"returned an invalid program: {error}"
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
    """Return how many steps run besides those of the program, the moves, waits and codings."""
    besides = sum(
        1
        for step in made.steps
        if step.lane == COMPUTE
        and step.operator.bytes_touched(made.operands(step))
        and not isinstance(step.operator, Narrow | Pack | Unpack | Widen)
    )
    before = sum(
        1 for step in program.steps if step.operator.bytes_touched(program.operands(step))
    )
    return max(0, besides - before)
