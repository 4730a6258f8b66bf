"""Spill as vDNN does, with runs of zeros left out on the link."""

from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner.rewrites import SpillSpan
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes
from arenite.strategies.survey.vdnn import VDNNAll


@dataclass(frozen=True, slots=True)
class CDMA(VDNNAll):
    """Spill all layers' inputs; results of clamps cross the link without their zeros.

    The zeros are a prediction of `compare --policies`: an assumed part, as only a run shows them.
    The other memory has room for the whole tensor. Our runtime does not compress: `fit` predicts,
    moves and stores all bytes, as with `vdnn-all`.

    Attributes:
        zeros: Expected part of zeros in results of clamps; the paper measures 0.5 to 0.9.
        mask: Bytes of the mask for each byte: one bit for 4 bytes.
    """

    name: ClassVar[str] = "cdma"
    source: ClassVar[str] = "Rhu et al. 2018, cDMA, arXiv 1705.01626, section 4"
    decides: ClassVar[str] = "what vdnn-all does; zeros left out on the link, predicted only"
    assumes: ClassVar[str] = (
        "bytes and times assume that 60 % of the results of clamps are zeros, left out on the "
        "link; programs that 'arenite fit' writes move all bytes"
    )

    zeros: float = 0.6
    mask: float = 1 / 32

    def spills(self, draft: Draft, passes: Passes, limit: int | None) -> tuple[SpillSpan, ...]:
        plain = VDNNAll.spills(self, draft, passes, limit)
        clamped = _made_by_clamps(draft.work)
        tensors = draft.work.program.tensors
        return tuple(
            replace(span, moved=int(tensors[span.tensor].size * (1 - self.zeros + self.mask)))
            if span.tensor in clamped
            else span
            for span in plain
        )


def _made_by_clamps(work: Work) -> frozenset[str]:
    program = work.program
    return frozenset(
        program.root(name)[0]
        for step in program.steps
        if step.operator.is_clamp
        for name in step.outputs
        if name
    )
