"""Gist's exact encodings, and half the bytes of what else the backward pass reads."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.budget import LEAST, Budget
from arenite.planner.costs import Costs
from arenite.planner.dtypes import DType
from arenite.planner.errors import UnmetBudgetError, UnsupportedProgramError
from arenite.planner.ordering import ShouldStop, never
from arenite.planner.program import Program
from arenite.planner.rewrites.narrowing import keep_narrow
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.strategies.fit.gist import Gist
from arenite.strategies.fit.passes import Passes
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class GistFP16:
    """Round what the backward pass reads to 16-bit floats, once the forward pass is done with it.

    The forward pass is exact up to the loss; gradients are of rounded tensors. Nothing is rounded
    where the exact encodings meet the budget.

    Attributes:
        ratio: Bytes made for each byte read, at most, of an exact encoding.
    """

    name: ClassVar[str] = "gist-fp16"
    source: ClassVar[str] = "Jain et al. 2018, Gist, ISCA, section 3 (delayed precision reduction)"
    decides: ClassVar[str] = "what gist does; the rest is kept as fp16, which is not exact"
    quick: ClassVar[bool] = True
    rounds: ClassVar[bool] = True

    ratio: float = 0.9

    def why_unsupported(self, program: Program) -> str | None:
        """Return None, or what in the program the policy cannot handle."""
        return Gist(self.ratio).why_unsupported(program)

    def __call__(self, program: Program, budget: Budget, costs: Costs) -> Program:
        """Return a program that fits the budget and has the same outputs, rounded."""
        return self.search(program, budget, costs, never)

    def search(
        self, program: Program, budget: Budget, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        """Return the program; the policy does not search.

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
        made = Gist(self.ratio).search(program, LEAST, costs, should_stop)
        if limit is None or peak_of(made) > limit:
            made = _narrowed(made, costs)
        peak = peak_of(made)
        if limit is not None and peak > limit:
            raise UnmetBudgetError(self.name, limit, peak)
        return made


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
