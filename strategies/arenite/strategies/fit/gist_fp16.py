"""Gist's exact encodings, and half the bytes of what else the backward pass reads."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.budget import LEAST
from arenite.planner.costs import Costs
from arenite.planner.dtypes import DType
from arenite.planner.ordering import ShouldStop
from arenite.planner.program import Program
from arenite.planner.rewrites.narrowing import keep_narrow
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.strategies.fit.base import BudgetPolicy
from arenite.strategies.fit.gist import Gist
from arenite.strategies.fit.passes import Passes
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class GistFP16(BudgetPolicy):
    """Round what the backward pass reads to 16-bit floats, once the forward pass is done with it.

    The forward pass is exact up to the loss; gradients are of rounded tensors. Nothing is rounded
    where the exact encodings meet the budget.

    Attributes:
        ratio: Bytes made for each byte read, at most, of an exact encoding.
    """

    name: ClassVar[str] = "gist-fp16"
    source: ClassVar[str] = "Jain et al. 2018, Gist, ISCA, section 3 (delayed precision reduction)"
    decides: ClassVar[str] = "what gist does; the rest is kept as fp16, which is not exact"
    rounds: ClassVar[bool] = True

    ratio: float = 0.9

    def why_unsupported(self, program: Program) -> str | None:
        """Return None, or what in the program the policy cannot handle."""
        return Gist(self.ratio).why_unsupported(program)

    def make(
        self, program: Program, limit: int | None, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        """Return the program with Gist's encodings, and rounded if that does not fit."""
        made = Gist(self.ratio).search(program, LEAST, costs, should_stop)
        if limit is not None and peak_of(made) <= limit:
            return made
        return _narrowed(made, costs)


def _narrowed(program: Program, costs: Costs) -> Program:
    work = Work.of(program, costs)
    passes = Passes.of(work)
    tensors = work.program.tensors
    sharing = Counter(work.program.root(name)[0] for name in tensors)
    touches: dict[int, list[int]] = {storage: [] for storage in passes.saved}
    for step in range(work.num_steps):
        for storage in {*work.reads[step], *work.writes[step]} & touches.keys():
            touches[storage].append(step)
    stays: dict[str, tuple[int, int]] = {}
    for storage in sorted(touches):
        name = work.names[storage]
        last = max(step for step in touches[storage] if step < passes.turn)
        following = min(step for step in touches[storage] if step >= passes.turn)
        is_plain = tensors[name].dtype is DType.FLOAT32 and sharing[name] == 1
        if is_plain and following > last + 1:
            stays[name] = work.numbers[last], work.numbers[following]
    return keep_narrow(work.program, stays)
