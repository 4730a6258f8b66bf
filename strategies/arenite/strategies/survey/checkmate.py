"""The least time within a budget as an integer program; its relaxation, rounded, where larger."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from arenite.planner import Program, ShouldStop
from arenite.planner.errors import MissingDependencyError, UnsupportedProgramError
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work

if TYPE_CHECKING:
    from arenite.strategies.survey.checkmate_model import Model


@dataclass(frozen=True, slots=True)
class Checkmate(SchedulePolicy):
    """Choose for each stage the steps that run and the tensors that are kept, all at once.

    Stage t computes step t for the first time, and before it whatever runs again for it. What the
    solver gives is a lower bound of memory only in part: the loads decide whether it fits.

    Attributes:
        most_exact: Most steps of a program that is solved exactly.
        most_steps: Most steps of a program whose relaxation is rounded.
        most_nodes: Limit of the exact search.
    """

    name: ClassVar[str] = "checkmate"
    source: ClassVar[str] = "Jain et al. 2020, Checkmate, arXiv 1910.02653, sections 4 and 5"
    decides: ClassVar[str] = "which tensors each stage keeps and recomputes, optimally"
    quick: ClassVar[bool] = False

    most_exact: int = 18
    most_steps: int = 48
    most_nodes: int = 2000

    def why_unsupported(self, program: Program) -> str | None:
        if len(program.steps) > self.most_steps:
            return (
                f"handles at most {self.most_steps} steps, as its program grows with their "
                f"square; this one has {len(program.steps)}"
            )
        return super(Checkmate, self).why_unsupported(program)

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        try:
            from arenite.strategies.survey.checkmate_model import Model
        except ModuleNotFoundError as error:
            if error.name != "ortools":
                raise
            raise MissingDependencyError("ortools", "solvers", "the policy checkmate") from error
        if limit is None:
            raise UnsupportedProgramError(self.name, "needs a budget; state one")
        drafts = self._drafts(work, Model(work, limit))
        return cheapest(drafts, limit, should_stop).schedule()

    def _drafts(self, work: Work, model: "Model") -> Iterator[Draft]:
        yield Draft(work)
        kept = model.relaxed()
        for percent in range(10, 100, 10):
            if kept is not None:
                yield Draft(work, closure(work, kept, percent / 100))
        if work.num_steps <= self.most_exact:
            kept = model.exact(self.most_nodes)
            if kept is not None:
                yield Draft(work, closure(work, kept, 0.5))


Kept = dict[tuple[int, int], float]
"""How much of what a step makes is kept into a stage, by stage and step; 0 where left out."""


def closure(work: Work, kept: Kept, threshold: float) -> list[int]:
    """Return the steps that run, in order, so that tensors above a threshold can be kept.

    Source: Jain et al. 2020, section 5.2 (two-phase rounding).
    """
    return _Closure(work).slots(kept, threshold)


class _Closure:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._slots: list[int] = []
        self._present: set[int] = set()  # steps whose results are there

    def slots(self, kept: Kept, threshold: float) -> list[int]:
        for stage in range(self._work.num_steps):
            following = {
                step for step in range(stage + 1) if kept.get((stage + 1, step), 0.0) > threshold
            }
            for step in sorted(following - {stage}):
                self._require(step, stage)
            self._require(stage, stage)
            self._present &= following
        return self._slots

    def _require(self, step: int, stage: int) -> None:
        work = self._work
        if step in self._present:
            return
        if step != stage and (not work.may_repeat[step] or work.closed_by[step] <= stage):
            return  # its result is kept
        for storage in work.reads[step]:
            maker = work.makers[storage]
            if 0 <= maker < step:  # a later one changes a state after the step has read it
                self._require(maker, stage)
        self._present.add(step)
        self._slots.append(step)
