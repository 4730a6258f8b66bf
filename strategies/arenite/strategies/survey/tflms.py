"""Spill along the edges of the graph that are long enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule, SpillSpan
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Gap, all_gaps
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.offloading import loads_with


@dataclass(frozen=True, slots=True)
class TFLMS(SchedulePolicy):
    """Spill tensors that are read again at a distance; fetch them some steps ahead of the reader.

    With a limit, the largest distance is taken at which the program fits.

    Attributes:
        distances: Least distances to try, as parts of the number of steps.
        ahead: Steps from the trigger to the reader.
    """

    name: ClassVar[str] = "tflms"
    source: ClassVar[str] = "Le et al. 2018, TFLMS, arXiv 1807.02037, section 4"
    decides: ClassVar[str] = "edges of the graph beyond a distance become spills"

    distances: tuple[float, ...] = (0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02)
    ahead: int = 5

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft = Draft(work)
        gaps = all_gaps(draft, 0 if limit is None else limit)
        small = draft.peak * 1e-4
        gaps = tuple(gap for gap in gaps if work.sizes[gap.instance.storage] > small)
        spills: tuple[SpillSpan, ...] = ()
        for part in self.distances:
            least = max(part * work.num_steps, self.ahead + 1)
            chosen = [gap for gap in gaps if draft.slot(gap.back) - draft.slot(gap.left) > least]
            spills = _spills(draft, chosen, self.ahead, limit or 0)
            peak = int(loads_with(draft, spills).max(initial=0))
            if (limit is not None and peak <= limit) or should_stop():
                break
        return draft.schedule(spills)


def _spills(draft: Draft, gaps: Sequence[Gap], ahead: int, limit: int) -> tuple[SpillSpan, ...]:
    """Return spills that are waited for where a link without other delays is done with them.

    Where bytes are short before, they are waited for there.
    """
    work, link = draft.work, draft.work.costs.link
    short = np.append(np.nonzero(draft.loads > limit)[0], len(draft.order))
    times = np.cumsum([0.0, *(work.seconds[draft.step_of[run]] for run in draft.order)])
    done = 0.0
    spills: list[SpillSpan] = []
    copied: set[int] = set()
    for gap in sorted(gaps, key=lambda gap: (draft.slot(gap.left), gap.instance.storage)):
        storage = gap.instance.storage
        leaves, back = draft.slot(gap.left) + 1, draft.slot(gap.back)
        returns = max(leaves, back - ahead)
        name = work.names[storage]
        if storage in copied:
            spills.append(SpillSpan(name, None, leaves, returns, back))
            continue
        arrival = max(done, float(times[leaves])) + link.out_s(work.sizes[storage])
        first_short = int(short[np.searchsorted(short, leaves)])
        gone = min(int(np.searchsorted(times, arrival)), first_short)
        if gone < returns:
            done = arrival
            copied.add(storage)
            spills.append(SpillSpan(name, leaves, gone, returns, back))
    spills.sort(key=lambda span: span.back)
    return tuple(spills)
