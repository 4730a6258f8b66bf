"""Programs that need less memory, found and measured while the user watches."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from arenite.pipeline.compiling import Compiled, rules, runs_by_rows
from arenite.pipeline.costs import MachineCosts
from arenite.pipeline.errors import (
    SlowdownError,
    UnplannableError,
)
from arenite.pipeline.observing import Search
from arenite.pipeline.ordering import order_finder
from arenite.pipeline.placing import Outcome
from arenite.pipeline.programs import held_bytes, random_inputs, write_program
from arenite.pipeline.reading import Reading
from arenite.pipeline.targets.arenite import lowered_for
from arenite.pipeline.targets.table import ARENITE
from arenite.pipeline.text import exact
from arenite.pipeline.trading import Traded, one_lane, trade
from arenite.planner.budget import Budget
from arenite.planner.costs import Costs, Link
from arenite.planner.derive import derive
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.plan import Plan
from arenite.planner.planfile import ModelReference, PlanFile
from arenite.planner.policy import Policy
from arenite.planner.problem import Problem
from arenite.planner.program import Program
from arenite.planner.several_memories import CostedMemory
from arenite.planner.strategy import run
from arenite.planner.timing import simulate
from arenite.planner.verify import verify
from arenite.runtime.program import file as program_file
from arenite.runtime.rewrites.lanes import derive_ahead, loads_in_turn
from arenite.runtime.session import Session, SessionMemory
from arenite.strategies import find, find_policy
from arenite.strategies.bands.binding import BandsLimitError
from arenite.strategies.bands.memories_search import SpreadOut, quickest_over
from arenite.strategies.bands.search import Banded
from arenite.strategies.bands.stated import stated
from arenite.strategies.bands.strips_search import StripsSearch

_ROUNDS = 7
"""Interleaved rounds in which latencies are measured."""
_ROUND_S = 0.05
"""Seconds that a program runs in each round, at least."""
_SEED = 0
_LOWEST = 3
"""Programs in bands, from the least on, of which a policy is asked for less."""
_ROWS = "offload-prefetch"
"""That policy: rows are too many for one that searches."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A program that may run in bands, or trade time for memory, next to the one that does not.

    Attributes:
        banded: The program and its plan.
        whole: The program that runs whole.
        traded: What a policy made of it; None if it made nothing.
        spread_out: How it lies in several memories; None if it lies in one.
    """

    banded: Banded
    whole: Banded
    traded: Traded | None = None
    spread_out: SpreadOut | None = None

    @property
    def height(self) -> int:
        """Bytes of the arena, without what tensors are spilled to."""
        return self.banded.height if self.traded is None else self.traded.height

    @property
    def multiply_adds_ratio(self) -> float:
        """Multiply-adds over those of the whole program."""
        whole = self.whole.multiply_adds
        return self.banded.multiply_adds / whole if whole else 1.0

    @property
    def slowdown(self) -> float:
        """Predicted time over that of the whole program, less 1."""
        if self.traded is not None:
            return self.traded.extra_time
        return self.banded.seconds / self.whole.seconds - 1 if self.whole.seconds else 0.0


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
            model: The file.
            reading: How it is read.
            machine: What its work costs; None for what is known of this machine.
            link: To the memory that tensors are spilled to; None for the machine's.

        Raises:
            CostsFileError: What is known of this machine is damaged.
            ModelError: It cannot be read or run.
            WeightBudgetError: The budget of its weights cannot be met.
        """
        self.model = model
        self._reading = reading
        self.machine = machine or MachineCosts.known()
        self.lowered = lowered_for(reading, model)
        order = order_finder(reading.order_name or "best", reading.limits)
        found = derive(self.lowered.program, rules(), order)
        self.program: Program = self.lowered.in_order(found)
        self._search = Search()
        self._is_over = reading.limits.is_over()
        costs = self.machine.of(_main_type(self.program))
        self._costs: Costs = one_lane(costs if link is None else replace(costs, link=link))
        self.link_origin = self.machine.link_origin if link is None else "stated"
        with self._stoppable():
            self._banding = StripsSearch(
                self.program,
                rules(),
                costs,
                self._placed,
                self._should_stop,
                partial(runs_by_rows, self.program),
            )

    @property
    def link(self) -> Link:
        """The link to what tensors are spilled to."""
        return self._costs.link

    @property
    def whole(self) -> Banded:
        """The program that runs whole."""
        return self._banding.whole

    def within(
        self,
        budget: Budget | None,
        slowdown: float | None,
        policy: Policy | None = None,
        *,
        fallback: Policy | None = None,
    ) -> Fit:
        """Return the quickest program within a budget, or the smallest within a slowdown.

        Args:
            budget: Of the arena.
            slowdown: Most of the predicted time over that of the whole program, less 1.
            policy: What trades time for memory in the place of bands; None for bands.
            fallback: What does where bands do not get there; None for nothing.

        Raises:
            BandsLimitError: Nothing gets as low as the budget.
            UnmetBudgetError: The policy does not.
            SlowdownError: What does takes too long.
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

    def over(self, memories: Sequence[CostedMemory]) -> Fit:
        """Return the quickest program over several memories.

        Raises:
            MemoriesLimitError: None that was found fits.
        """
        with self._stoppable():
            found = quickest_over(
                self._banding, memories, self._costs, self._placed, self._should_stop
            )
            verify(found.banded.derivation.problem, found.banded.plan)
        return Fit(found.banded, self.whole, spread_out=found)

    def frontier(self) -> list[Fit]:
        """Return programs that need less and less, as many as are found in time."""
        found: list[Fit] = []
        with self._stoppable() as search:
            for banded in self._banding.frontier():
                found.append(self._fit(banded))
                search.show(f"fit: {len(found)} programs, the least {exact(banded.height)}")
        return found

    def held(self, fit: Fit) -> SessionMemory:
        """Return the bytes that a session of a program holds.

        Raises:
            UnloadableError: None runs it.
        """
        return held_bytes(self.compiled(fit), fit.banded.plan)

    def latencies(self, fits: Sequence[Fit]) -> list[float]:
        """Return the median latency of each program on one thread, in seconds.

        They take turns, so that what else the machine does meets all of them.
        """
        arrays = random_inputs(self.program, _SEED)
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.session(fit)) for fit in fits]
            rounds = [
                [least_seconds(each, arrays, _ROUND_S) for each in sessions]
                for _ in range(_ROUNDS)
            ]
        return [statistics.median(times) for times in zip(*rounds, strict=True)]

    def session(self, fit: Fit) -> Session:
        """Return a session of a program, for the caller to close."""
        pieces = list(program_file.pieces(self.compiled(fit).assemble(fit.banded.plan)))
        return Session.of_pieces(pieces, self.lowered.name)

    def compiled(self, fit: Fit) -> Compiled:
        """Return the program of a fit, ready to be assembled with its plan."""
        return self.lowered.compiled(fit.banded.derivation)

    def write(self, output: Path, fit: Fit) -> SessionMemory:
        """Write the program file, once it has been loaded, and return what it then holds.

        Raises:
            UnloadableError: No session runs it.
            OutputError: It cannot be written.
        """
        outcome = Outcome(fit.banded.plan, 0.0, interrupted=False)
        return write_program(output, self.compiled(fit), outcome)

    def plan_file(self, fit: Fit) -> PlanFile:
        """Return the plan of a program as a file that `arenite build --plan` takes.

        Raises:
            UnplannableError: It does not run in bands alone.
        """
        if fit.traded is not None:
            raise UnplannableError(fit.traded.policy)
        reading, banded = self._reading, fit.banded
        problem = banded.derivation.problem
        budget = reading.weight_budget
        return PlanFile(
            ModelReference(
                self.lowered.name, self.lowered.digest, reading.dims, reading.shapes,
                "" if budget is None else str(budget), reading.values,
            ),
            ARENITE.name,
            Boundary.INCLUDE,
            min((record.alignment for record in problem.records), default=DEFAULT_ALIGNMENT),
            (),
            problem,
            banded.plan,
            stated(self.program, banded) if banded.regions else None,
        )  # fmt: skip

    def _fit(self, banded: Banded, room: int | None = None) -> Fit:
        return Fit(self._ahead(banded, room or banded.height), self.whole)

    def _ahead(self, banded: Banded, room: int) -> Banded:
        """Return the same, its weights loaded beside the computation as early as there is room."""
        found = banded.derivation
        counted = replace(rules(), outlines=found.problem.has_outlines)
        for limit in (room, found.problem.lower_bound) if self.lowered.loads_beside else ():
            ahead = derive_ahead(found, counted, limit)
            plan = self._placed(ahead.problem)
            if plan.height <= room:
                return replace(banded, derivation=ahead, plan=plan)
        return banded

    def _within(self, budget: int, fallback: Policy | None) -> Fit:
        """Return the program in bands, or where they do not get there what else does.

        That is the policy, and where that does not get there either, both.
        """
        try:
            return self._fit(self._banding.within(budget), budget)
        except BandsLimitError as limit:
            if fallback is None:
                raise
            try:
                return self._traded(fallback, budget)
            except (UnmetBudgetError, UnsupportedProgramError):
                return self._traded_in_bands(budget, limit)

    def _traded(self, policy: Policy, budget: int) -> Fit:
        if self.whole.height <= budget:
            return self._fit(self.whole, budget)
        return self._traded_from(self.whole, policy, budget)

    def _traded_in_bands(self, budget: int, limit: BandsLimitError) -> Fit:
        """Return the quickest of programs in bands of which rows are spilled.

        Raises:
            BandsLimitError: None fits.
        """
        _, *bands = self._banding.frontier()
        found: list[Fit] = []
        reached = limit.reached
        for banded in bands[: -_LOWEST - 1 : -1]:
            try:
                found.append(self._traded_from(banded, find_policy(_ROWS), budget))
            except UnmetBudgetError as error:
                reached = min(reached, error.reached)
            except UnsupportedProgramError:
                continue
        if not found:
            raise limit.with_traded(reached) from None
        return min(found, key=lambda fit: fit.slowdown)

    def _traded_from(self, given: Banded, policy: Policy, budget: int) -> Fit:
        """Return what a policy makes of the program that runs whole, or of one in bands."""
        found = trade(
            loads_in_turn(given.unshared), policy, Budget(budget), self._costs, rules(),
            self._placed, given.height, self._should_stop,
        )  # fmt: skip
        if given is not self.whole:
            found = replace(found, whole_s=simulate(self.program, self._costs).seconds)
        banded = replace(
            given, derivation=found.derivation, plan=found.plan, seconds=found.timeline.seconds
        )
        return Fit(banded, self.whole, found)

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
        begun = time.perf_counter()
        session.run(arrays)
        best = min(best, time.perf_counter() - begun)
    return best
