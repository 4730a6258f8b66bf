"""Base classes of policies: they check the budget, and turn programs into schedules and back."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from arenite.planner import Budget, Costs, Program, ShouldStop
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.programs import COMPUTE, never
from arenite.planner.rewrites import Schedule, peak_of, reschedule
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work


class BudgetPolicy(ABC):
    """A policy that makes another program where the given one does not fit the budget."""

    __slots__ = ()

    name: ClassVar[str]
    source: ClassVar[str]
    decides: ClassVar[str]
    quick: ClassVar[bool] = True

    @abstractmethod
    def why_unsupported(self, program: Program) -> str | None:
        """Return None, or the property of the program that the policy does not support."""

    def __call__(self, program: Program, budget: Budget, costs: Costs) -> Program:
        """Return a program that fits the budget and has the same outputs."""
        return self.search(program, budget, costs, never)

    def search(
        self, program: Program, budget: Budget, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        """Return the program that the policy has when it ends or `should_stop` stops it.

        Raises:
            UnsupportedProgramError: The policy does not handle such a program.
            UnmetBudgetError: It does not get as low as the budget.
        """
        reason = self.why_unsupported(program)
        if reason is not None:
            raise UnsupportedProgramError(self.name, reason)
        before = peak_of(program)
        limit = budget.bytes_of(before)
        if limit is not None and before <= limit:
            return program
        made = self.make(program, limit, costs, should_stop)
        peak = peak_of(made)
        if limit is not None and peak > limit:
            raise UnmetBudgetError(self.name, limit, peak)
        return made

    @abstractmethod
    def make(
        self, program: Program, limit: int | None, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        """Return the program that is made of one that is handled and does not fit.

        Args:
            limit: Most bytes live at once; None for as few as the policy reaches.
        """


class SchedulePolicy(BudgetPolicy):
    """A policy that decides on a schedule of the program's steps."""

    __slots__ = ()

    def why_unsupported(self, program: Program) -> str | None:
        for step in program.steps:
            if step.operator.fixes_order:
                return "cannot recompute steps of subgraphs"
            if step.lane != COMPUTE:
                return f"cannot schedule step {step.name!r}, which is on another lane already"
        return None

    def make(
        self, program: Program, limit: int | None, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        work = Work.of(program, costs)
        if not work.num_steps:
            return program
        return reschedule(work.program, self.decide(work, limit, should_stop), costs.link)

    @abstractmethod
    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the runs and the spills."""


def cheapest(drafts: Iterable[Draft], limit: int | None, should_stop: ShouldStop) -> Draft:
    """Return the quickest draft within the limit; the lowest if none is, or there is no limit."""
    best: tuple[int, float] | None = None
    chosen: Draft | None = None
    for draft in drafts:
        value = (max(draft.peak, limit or 0), draft.seconds)
        if best is None or value < best:
            best, chosen = value, draft
        if should_stop():
            break
    assert chosen is not None
    return chosen
