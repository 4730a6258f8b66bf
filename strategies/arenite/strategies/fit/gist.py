"""Keep the smallest thing that the backward pass needs of a tensor, from its last use on."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy
from arenite.strategies.fit.passes import Passes
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class Gist(SchedulePolicy):
    """Run steps of the backward pass that make less than they read right after the forward ones.

    Exact encodings are steps of the program already: the mask of where a ReLU's result is above
    zero, a byte an element, or the places of a pool's largest elements. Each is made as soon as
    the forward pass is done with what it reads, and kept instead, if no other step of the
    backward pass reads that.

    Attributes:
        ratio: Bytes made for each byte read, at most.
    """

    name: ClassVar[str] = "gist"
    source: ClassVar[str] = "Jain et al. 2018, Gist, ISCA, section 3 (exact encodings)"
    decides: ClassVar[str] = "which encodings are made early and kept instead of tensors"

    ratio: float = 0.9

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the one schedule there is, whatever the limit."""
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
