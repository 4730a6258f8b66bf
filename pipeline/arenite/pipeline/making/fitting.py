"""Programs that need less memory, found and measured while the user watches."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from arenite.pipeline.base.errors import OptionsError, SlowdownError, UnplannableError
from arenite.pipeline.base.observing import Search
from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import Outcome
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.base.text import exact
from arenite.pipeline.making.costs import MachineCosts
from arenite.pipeline.making.programs import (
    held_bytes,
    random_inputs,
    session_by_plan,
    with_callers,
    write_program,
)
from arenite.pipeline.making.shortest_runs import predicted_s
from arenite.pipeline.making.trading import Rescheduled, one_lane, trade
from arenite.pipeline.targets.choice import ARENITE
from arenite.pipeline.targets.compiling import Compiled, lower_model, rules, runs_by_rows
from arenite.planner import (
    DEFAULT_ALIGNMENT,
    Boundary,
    Budget,
    Candidate,
    Costs,
    Link,
    Plan,
    PlanFile,
    Policy,
    Problem,
    Program,
    derive,
    verify,
)
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.operators import Strips
from arenite.planner.placement import run
from arenite.planner.planfile import ModelReference
from arenite.planner.programs import CostedMemory, RowStep
from arenite.runtime import Session, SessionMemory
from arenite.runtime.rewrites import (
    derive_ahead,
    loads_in_turn,
    resident_bytes,
    split_channels,
    split_heads,
)
from arenite.strategies import (
    BandsLimitError,
    InBands,
    StripsSearch,
    describe_bands,
    find,
    find_policy,
    quickest_over,
)

_ROUNDS = 7
"""Interleaved rounds in which latencies are measured."""
_ROUND_S = 0.05
"""Seconds that a program runs in each round, at least."""
_SEED = 0
_LOWEST = 3
"""Number of programs in bands, the smallest ones, that a policy tries to make smaller."""
_ROWS = "offload-prefetch"
"""That policy: rows are too many for one that searches."""


class Fitting:
    """A model and the ways to run it in less memory."""

    def __init__(
        self,
        model: Path,
        reading: Reading,
        machine: MachineCosts | None = None,
        link: Link | None = None,
    ) -> None:
        """Read a model.

        Args:
            machine: Costs of the machine; None for those of this machine.
            link: To the memory that tensors are spilled to; None for the machine's.

        Raises:
            CostsFileError: The stored costs of this machine are damaged.
            ModelError: It cannot be read or run.
            WeightBudgetError: The budget of its weights cannot be met.
        """
        self.model = model
        self._reading = reading
        self.machine = machine or MachineCosts.known()
        self.lowered = lower_model(model, reading)
        self._rules = replace(rules(), boundary=reading.boundary)
        order = order_finder(reading.order_name or "best", reading.limits)
        found = derive(self.lowered.program, self._rules, order)
        self.program: Program = self.lowered.in_order(found)
        self._search = Search()
        self._is_over = reading.limits.is_over()
        costs = self.machine.of(_main_type(self.program))
        self._costs: Costs = one_lane(costs if link is None else replace(costs, link=link))
        self.link_origin = self.machine.link_origin if link is None else "stated"
        with self._stoppable():
            self._banding = StripsSearch(
                self.program,
                self._rules,
                costs,
                self._placed,
                self._should_stop,
                partial(runs_by_rows, self.program),
                _in_parts,
            )

    @property
    def link(self) -> Link:
        """The link to the memory of spilled tensors."""
        return self._costs.link

    @property
    def whole(self) -> Candidate:
        """The program that runs whole."""
        return self._banding.whole

    @property
    def ahead(self) -> Candidate:
        """The program that runs whole, its weights loaded as early as there is room."""
        return self._ahead(self.whole)

    @property
    def resident_weights(self) -> int:
        """Bytes of weights that stay resident during a run."""
        streaming = self.lowered.streaming
        return resident_bytes(self.program) if streaming is None else streaming.resident

    @property
    def loaded_weights(self) -> int:
        """Bytes of weights that each run loads from the file."""
        return 0 if self.lowered.streaming is None else self.lowered.streaming.streamed

    def run_s(self, fit: Candidate, program: Program | None = None) -> float:
        """Return the predicted seconds of the shortest run of a program.

        Args:
            program: Its steps, whole, in the place of those that were read.
        """
        return predicted_s(program or self.program, self._costs, fit.slowdown)

    def within(
        self,
        budget: Budget | None,
        slowdown: float | None,
        policy: Policy | None = None,
        *,
        fallback: Policy | None = None,
    ) -> Candidate:
        """Return the quickest program within a budget, or the smallest within a slowdown.

        Args:
            slowdown: Most of the predicted time over that of the whole program, less 1.
            policy: Policy in the place of bands; None for bands.
            fallback: Policy to try if bands miss the budget; None for none.

        Raises:
            BandsLimitError: Nothing gets as low as the budget.
            UnmetBudgetError: The policy does not.
            SlowdownError: A program that meets it takes too long.
        """
        if budget is None:
            assert slowdown is not None
            quick = [fit for fit in self.frontier() if fit.slowdown <= slowdown]
            return min(quick, key=lambda fit: fit.height)
        size = budget.bytes_of(self.whole.height)
        assert size is not None
        with self._stoppable():
            fit = self._within(size, fallback) if policy is None else self._traded(policy, size)
        if slowdown is not None and fit.slowdown > slowdown:
            raise SlowdownError(size, fit.slowdown, slowdown)
        return fit

    def over(self, memories: Sequence[CostedMemory]) -> Candidate:
        """Return the quickest program over several memories.

        Raises:
            MemoriesLimitError: None that was found fits.
        """
        with self._stoppable():
            found = quickest_over(
                self._banding, memories, self._costs, self._placed, self._should_stop
            )
            verify(found.problem, found.plan)
        return found

    def frontier(self) -> list[Candidate]:
        """Return programs that need less and less, as many as are found in time."""
        found: list[Candidate] = []
        with self._stoppable() as search:
            for banded in self._banding.frontier():
                found.append(self._ahead(banded))
                search.show(f"fit: {len(found)} programs, the least {exact(banded.height)}")
        return found

    def held(self, fit: Candidate) -> SessionMemory:
        """Return the bytes that a session of a program holds.

        Raises:
            UnloadableError: None runs it.
        """
        whole = self._with_callers(fit)
        return held_bytes(self.compiled(whole), whole.plan)

    def latencies(self, fits: Sequence[Candidate]) -> list[float]:
        """Return the median latency of each program on one thread, in seconds.

        They take turns, so that other work of the machine affects all of them.
        """
        arrays = random_inputs(self.program, _SEED)
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.session(fit)) for fit in fits]
            rounds = [
                [least_seconds(each, arrays, _ROUND_S) for each in sessions]
                for _ in range(_ROUNDS)
            ]
        return [statistics.median(times) for times in zip(*rounds, strict=True)]

    def session(self, fit: Candidate) -> Session:
        """Return a session of a program, for the caller to close."""
        whole = self._with_callers(fit)
        return session_by_plan(self.compiled(whole), whole.plan)

    def compiled(self, fit: Candidate) -> Compiled:
        """Return the program of a fit, ready to be assembled with its plan."""
        return self.lowered.compiled(fit.derivation)

    def write(self, output: Path, fit: Candidate) -> SessionMemory:
        """Load the program, write its file and return the bytes that a session holds.

        Raises:
            UnloadableError: No session runs it.
            OutputError: It cannot be written.
        """
        whole = self._with_callers(fit)
        outcome = Outcome(whole.plan, 0.0, interrupted=False)
        return write_program(output, self.compiled(whole), outcome)

    @property
    def has_callers(self) -> bool:
        """Whether inputs and outputs are the caller's, outside the arena."""
        return self._rules.boundary is Boundary.EXCLUDE

    def callers_bytes(self, fit: Candidate) -> int:
        """Return the bytes of inputs and outputs outside the arena."""
        whole = self._with_callers(fit)
        return sum(whole.plan.heights) - sum(fit.plan.heights)

    def _with_callers(self, fit: Candidate) -> Candidate:
        if not self.has_callers:
            return fit
        program, problem, plan = with_callers(
            fit.program, fit.problem, fit.plan, self._rules.alignment
        )
        return replace(fit, program=program, problem=problem, plan=plan)

    def plan_file(self, fit: Candidate) -> PlanFile:
        """Return the plan of a program as a file that `arenite build --plan` takes.

        Raises:
            UnplannableError: It does not run the model's steps in bands alone.
            OptionsError: It leaves inputs and outputs to the caller.
        """
        if self.has_callers:
            raise OptionsError("--boundary exclude writes a program, MODEL.arena, not a plan file")
        rescheduled = fit.note(Rescheduled)
        if rescheduled is not None:
            raise UnplannableError(f"policy {rescheduled.policy!r} recomputes or spills tensors")
        known = {step.name for step in self.program.steps}
        for step in InBands.of(fit).base.steps:
            if step.name not in known and not isinstance(step.operator, Strips):
                raise UnplannableError(f"step {step.name!r} repeats, or is a part of, another one")
        reading, problem = self._reading, fit.problem
        budget = reading.weight_budget
        return PlanFile(
            ModelReference(
                self.lowered.name, self.lowered.digest, reading.dims, reading.shapes,
                "" if budget is None else str(budget), reading.values, reading.activations or "",
                reading.cache or "",
            ),
            ARENITE.name,
            Boundary.INCLUDE,
            min((record.alignment for record in problem.records), default=DEFAULT_ALIGNMENT),
            (),
            problem,
            fit.plan,
            describe_bands(self.program, fit) if InBands.of(fit).regions else None,
            self.program.dimensions,
        )  # fmt: skip

    def _ahead(self, fit: Candidate, room: int | None = None) -> Candidate:
        """Return the same, its weights loaded beside the computation as early as there is room."""
        room = room or fit.height
        counted = replace(self._rules, outlines=fit.problem.has_outlines)
        for limit in (room, fit.problem.lower_bound) if self.lowered.loads_beside else ():
            ahead = derive_ahead(fit.derivation, counted, limit)
            plan = self._placed(ahead.problem)
            if plan.height <= room:
                return replace(fit, program=ahead.program, problem=ahead.problem, plan=plan)
        return fit

    def _within(self, budget: int, fallback: Policy | None) -> Candidate:
        """Return the program in bands, or else of the policy, or else of both."""
        try:
            return self._ahead(self._banding.within(budget), budget)
        except BandsLimitError as limit:
            if fallback is None:
                raise
            try:
                return self._traded(fallback, budget)
            except (UnmetBudgetError, UnsupportedProgramError):
                return self._traded_in_bands(budget, limit)

    def _traded(self, policy: Policy, budget: int) -> Candidate:
        """Return the quickest program of a policy, from the searched and the model's order.

        Policies look for points after which one tensor is live. An order of the least peak may
        have few of them, as it moves steps of the backward pass forwards.
        """
        if self.whole.height <= budget:
            return self._ahead(self.whole, budget)
        starts = [self.whole]
        if self._reading.order_name is None and self.program != self.lowered.program:
            given = Candidate.of(
                self.lowered.program, self._rules, self._placed, self.whole.seconds
            )
            starts.append(replace(given, before=self.whole))
        found: list[Candidate] = []
        missed: list[UnmetBudgetError] = []
        for start in starts:
            try:
                found.append(self._traded_from(start, policy, budget))
            except UnmetBudgetError as error:
                missed.append(error)
            if self._should_stop():
                break
        if not found:
            raise min(missed, key=lambda error: error.least)
        return min(found, key=lambda fit: fit.seconds)

    def _traded_in_bands(self, budget: int, limit: BandsLimitError) -> Candidate:
        """Return the quickest of programs in bands of which rows are spilled."""
        _, *bands = self._banding.frontier()
        found: list[Candidate] = []
        reached = limit.least
        for banded in bands[: -_LOWEST - 1 : -1]:
            if self._should_stop():
                break
            try:
                found.append(self._traded_from(banded, find_policy(_ROWS), budget))
            except UnmetBudgetError as error:
                reached = min(reached, error.least)
            except UnsupportedProgramError:
                continue
        if not found:
            raise limit.with_traded(reached) from None
        return min(found, key=lambda fit: fit.slowdown)

    def _traded_from(self, given: Candidate, policy: Policy, budget: int) -> Candidate:
        """Return the result of a policy for the whole program, or for one in bands."""
        in_turn = replace(given, unshared=loads_in_turn(given.unshared))
        return trade(
            in_turn,
            policy,
            Budget(budget),
            self._costs,
            self._rules,
            self._placed,
            self._should_stop,
        )

    def _should_stop(self) -> bool:
        return self._search.should_stop() or self._is_over()

    def _placed(self, problem: Problem) -> Plan:
        plan = run(find("best"), problem, lambda _best, _bound: self._should_stop())
        verify(problem, plan)
        return plan

    @contextmanager
    def _stoppable(self) -> Iterator[Search]:
        """Return a block in which the observer may stop the search."""
        with self._reading.limits.observer.searching("fit", "program") as search:
            self._search = search
            yield search


def _in_parts(program: Program) -> tuple[Program, Callable[[RowStep], bool]]:
    """Return a program in groups of heads and of channels, and which steps may run row by row."""
    found = split_channels(split_heads(program))
    return found, partial(runs_by_rows, found)


def _main_type(program: Program) -> str:
    """Return the type of the elements that most multiply-adds are of."""
    work: Counter[str] = Counter()
    for step in program.steps:
        operands = program.operands(step)
        if operands.source is not None:
            work[operands.source.dtype.label] += step.operator.multiply_adds(operands)
    return max(work, key=lambda label: (work[label], label), default="float32")


def least_seconds(session: Session, arrays: Mapping[str, NDArray[Any]], round_s: float) -> float:
    """Return the least seconds of a run, of as many as fill a round of so many seconds."""
    best, end = math.inf, time.perf_counter() + round_s
    while best == math.inf or time.perf_counter() < end:
        if session.states.length:
            session.states.reset()
        begun = time.perf_counter()
        session.run(arrays)
        best = min(best, time.perf_counter() - begun)
    return best
