"""Gist: keep the smallest encoding of a tensor that the backward pass needs."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import LEAST, Costs, DType, Program, ShouldStop
from arenite.planner.rewrites import Schedule, keep_narrow, peak_of
from arenite.strategies.schedules.base import BudgetPolicy, SchedulePolicy
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes


@dataclass(frozen=True, slots=True)
class Gist(SchedulePolicy):
    """Run steps of the backward pass that make less than they read right after the forward ones.

    Exact encodings are steps of the program already: the mask of where a ReLU's result is above
    zero, or the places of a pool's largest elements. Each is made as soon as the forward pass is
    done with what it reads, and kept instead, if no other step of the backward pass reads that.
    Masks are kept as a bit an element. The paper also codes sparse tensors by rows (CSR); no step
    does here: only a run knows the size of a sparse code, and a planned arena must hold its worst
    case, which is larger than the tensor.

    Attributes:
        ratio: Bytes made for each byte read, at most.
    """

    name: ClassVar[str] = "gist"
    source: ClassVar[str] = "Jain et al. 2018, Gist, ISCA, section 3 (exact encodings)"
    decides: ClassVar[str] = "which masks, as bits, are kept instead of tensors"

    ratio: float = 0.9

    def make(
        self, program: Program, limit: int | None, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        made = super(Gist, self).make(program, limit, costs, should_stop)
        if limit is not None and peak_of(made) <= limit:
            return made
        return _coded(made, costs, DType.BOOL)

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        passes = Passes.of(work)
        readers: list[list[int]] = [[] for _ in work.sizes]
        for step in range(work.num_steps):
            for storage in work.reads[step]:
                readers[storage].append(step)
        early: dict[int, list[int]] = {}
        moved: set[int] = set()
        for storage in sorted(passes.saved):
            later = [step for step in readers[storage] if step >= passes.turn]
            forward = [step for step in readers[storage] if step < passes.turn]
            made = sum(work.sizes[each] for step in later for each in work.writes[step])
            if made > self.ratio * work.sizes[storage]:
                continue
            if all(_reads_no_more(work, step, storage, passes.turn) for step in later):
                after = max([work.makers[storage], *forward])
                early.setdefault(after, []).extend(later)
                moved.update(later)
        slots: list[int] = []
        for step in range(work.num_steps):
            if step not in moved:
                slots.append(step)
                slots.extend(sorted(early.get(step, ())))
        return Schedule(tuple(work.numbers[step] for step in slots))


def _reads_no_more(work: Work, step: int, storage: int, turn: int) -> bool:
    """Tell whether a step can run as soon as one of its operands is there."""
    others = [each for each in work.reads[step] if each != storage]
    is_pure = work.may_repeat[step] and work.closed_by[step] >= turn
    return is_pure and all(work.makers[each] < 0 and not work.is_kept[each] for each in others)


@dataclass(frozen=True, slots=True)
class GistFP16(BudgetPolicy):
    """Round tensors of the backward pass to 16-bit floats after their last forward reader.

    The forward pass is exact up to the loss; gradients are of rounded tensors. Nothing is rounded
    where the exact encodings meet the budget.

    Attributes:
        ratio: Bytes made for each byte read, at most, of an exact encoding.
    """

    name: ClassVar[str] = "gist-fp16"
    source: ClassVar[str] = "Jain et al. 2018, Gist, ISCA, section 3 (delayed precision reduction)"
    decides: ClassVar[str] = "as gist; the other tensors are kept as fp16, which is not exact"
    rounds: ClassVar[bool] = True

    ratio: float = 0.9

    def why_unsupported(self, program: Program) -> str | None:
        return Gist(self.ratio).why_unsupported(program)

    def make(
        self, program: Program, limit: int | None, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        made = Gist(self.ratio).search(program, LEAST, costs, should_stop)
        if limit is not None and peak_of(made) <= limit:
            return made
        return _coded(made, costs, DType.FLOAT32)


def _coded(program: Program, costs: Costs, dtype: DType) -> Program:
    """Return a program whose tensors of a type are kept in fewer bits between the passes."""
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
        is_plain = tensors[name].dtype is dtype and sharing[name] == 1
        if is_plain and following > last + 1:
            stays[name] = work.numbers[last], work.numbers[following]
    return keep_narrow(work.program, stays)
