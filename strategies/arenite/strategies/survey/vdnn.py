"""Spill every layer's input beside the layer, and fetch it one layer ahead."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule, SpillSpan
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Gap
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.offloading import gaps_over_turn, loads_with, pipelined
from arenite.strategies.survey.passes import Passes
from arenite.strategies.survey.superneurons import heavy_steps


@dataclass(frozen=True, slots=True)
class _VDNN(SchedulePolicy):
    source: ClassVar[str] = "Rhu et al. 2016, vDNN, arXiv 1602.08124, section 3"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft, passes = Draft(work), Passes.of(work)
        return draft.schedule(self.spills(draft, passes, limit))

    @abstractmethod
    def spills(self, draft: Draft, passes: Passes, limit: int | None) -> tuple[SpillSpan, ...]:
        """Return the spills of a draft."""


@dataclass(frozen=True, slots=True)
class VDNNAll(_VDNN):
    """Spill the inputs of all layers."""

    name: ClassVar[str] = "vdnn-all"
    decides: ClassVar[str] = "tensors that the forward pass reads are spilled"

    def spills(self, draft: Draft, passes: Passes, limit: int | None) -> tuple[SpillSpan, ...]:
        return pipelined(draft, gaps_over_turn(draft, passes), lag=0)


@dataclass(frozen=True, slots=True)
class VDNNConv(_VDNN):
    """Spill the inputs of convolutions and products."""

    name: ClassVar[str] = "vdnn-conv"
    decides: ClassVar[str] = "tensors that heavy forward steps read are spilled"

    def spills(self, draft: Draft, passes: Passes, limit: int | None) -> tuple[SpillSpan, ...]:
        return pipelined(draft, _read_by_heavy(draft, passes), lag=0)


@dataclass(frozen=True, slots=True)
class VDNNDynamic(_VDNN):
    """Spill nothing, else the inputs of heavy layers, else those of all, the first that fits.

    The choice of algorithms by their working memory has no counterpart here.
    """

    name: ClassVar[str] = "vdnn-dynamic"
    decides: ClassVar[str] = "the first of vdnn-conv and vdnn-all that fits"

    def spills(self, draft: Draft, passes: Passes, limit: int | None) -> tuple[SpillSpan, ...]:
        few = VDNNConv().spills(draft, passes, limit)
        if limit is not None and int(loads_with(draft, few).max(initial=0)) <= limit:
            return few
        return VDNNAll().spills(draft, passes, limit)


def _read_by_heavy(draft: Draft, passes: Passes) -> tuple[Gap, ...]:
    is_heavy = heavy_steps(draft.work)
    return tuple(
        gap
        for gap in gaps_over_turn(draft, passes)
        if any(is_heavy[run] for run in gap.instance.readers if run < passes.turn)
    )
