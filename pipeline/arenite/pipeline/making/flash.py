"""A choice between size and speed of exported C, layer by layer, within a budget of flash.

The layers may run by quick kernels or by those of less code, and the weights of each may be stored
by a code of fewer bytes, which a run decodes into the arena.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from arenite.pipeline.base import both
from arenite.planner.errors import BudgetError
from arenite.runtime.cexport import (
    CYCLES_OF_DECODING,
    CExport,
    LoweredForC,
    windowed,
    with_windows,
)


class FlashBudgetError(BudgetError):
    """An export does not fit a budget of flash."""

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"the budget of flash is {budget:,} B, the least that is reached {both(least)}; raise "
            "--flash; nothing was written",
            budget,
            least,
        )


@dataclass(frozen=True, slots=True)
class FlashPoint:
    """A way to store and run the layers.

    Attributes:
        flash: Bytes of weights and code, estimated.
        cycles: Of a run on a Cortex-M4, estimated; None if they are not.
        added: Cycles beyond those of the quickest way, estimated.
        is_quick: Whether quick kernels run the layers.
        coded: Steps whose weights are coded.
    """

    flash: int
    cycles: int | None
    added: int
    is_quick: bool
    coded: tuple[str, ...] = ()


def flash_frontier(
    lowered: LoweredForC, written: Callable[[LoweredForC, FlashPoint], CExport]
) -> list[FlashPoint]:
    """Return the ways of which none is both smaller and quicker than another, the quickest first.

    Args:
        lowered: The model.
        written: Returns it as C, stored and run as a point says; its flash and cycles are ignored.
    """
    quick, plain = (
        written(lowered, FlashPoint(0, None, 0, is_quick)) for is_quick in (True, False)
    )
    found = [_whole(quick, quick, is_quick=True), _whole(plain, quick, is_quick=False)]
    names = tuple(each.step.name for each in windowed(lowered.program))
    if names:
        coded = written(lowered, FlashPoint(0, None, 0, is_quick=True, coded=names))
        found += _coded(lowered, coded, found)
    found.sort(key=lambda each: (each.added, each.flash))
    return [
        each
        for each, least in zip(
            found, accumulate((p.flash for p in found[:-1]), min, initial=found[0].flash + 1),
            strict=True,
        )
        if each.flash < least
    ]  # fmt: skip


def flash_of(export: CExport) -> int:
    """Return the bytes of flash of an export, estimated."""
    return export.weight_bytes + export.estimate.code_bytes


def _whole(export: CExport, quickest: CExport, *, is_quick: bool) -> FlashPoint:
    cycles, least = export.estimate.cycles, quickest.estimate.cycles
    added = 0 if cycles is None or least is None else cycles - least
    return FlashPoint(flash_of(export), cycles, added, is_quick)


def _coded(lowered: LoweredForC, export: CExport, whole: Sequence[FlashPoint]) -> list[FlashPoint]:
    """Return both ways with more and more layers coded, those that save most of a byte first."""
    program = with_windows(lowered.program, (each.step.name for each in windowed(lowered.program)))
    layers = {step.inputs[1]: step.name for step in program.steps if len(step.inputs) > 1}
    gains = sorted(
        ((size - short, size, layers[window]) for window, (size, short) in export.coded.items()),
        key=lambda gain: (-gain[0] / gain[1], gain[2]),
    )
    gains = [gain for gain in gains if gain[0] > 0]
    saved = sum(gain[0] for gain in gains)
    of_decoder = flash_of(export) - whole[0].flash + saved
    found = []
    for each in whole:
        flash, cycles = each.flash + of_decoder, 0
        names: tuple[str, ...] = ()
        for gain, size, name in gains:
            flash, cycles, names = flash - gain, cycles + CYCLES_OF_DECODING * size, (*names, name)
            known = None if each.cycles is None else each.cycles + cycles
            found.append(FlashPoint(flash, known, each.added + cycles, each.is_quick, names))
    return found
