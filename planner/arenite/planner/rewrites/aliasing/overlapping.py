"""Choose where results overlap their operands: one overlap after another, at the peak.

Two storages that overlap become one, which lives as long as either. That lowers the load at
the operator and raises it before and after, so a few overlaps are tried before judging.
"""

from dataclasses import dataclass

from arenite.planner.dtypes import DType
from arenite.planner.names import Names
from arenite.planner.program import Program
from arenite.planner.rewrites.aliasing.loads import Loads
from arenite.planner.rewrites.aliasing.overlap import permitted_overlap
from arenite.planner.rewrites.aliasing.storages import Storages
from arenite.planner.tensors import Tensor, TensorKind
from arenite.planner.units import align_up

_LOOK_AHEAD = 16
"""Number of overlaps to try without reaching a lower peak."""


@dataclass(slots=True)
class Outcome:
    """State of the search for overlaps.

    Attributes:
        storages: The storages, overlapping where that helps.
        loads: The load of these storages over the steps.
        num_overlaps: Number of operators whose result overlaps the operand.
        step: Step at which the search ended.
        reason: Why there can be no overlap at that step.
    """

    storages: Storages
    loads: Loads
    num_overlaps: int = 0
    step: int = 0
    reason: str = ""


def overlap_at_peaks(
    program: Program, storages: Storages, loads: Loads, alignment: int
) -> Outcome:
    """Return the storages with the overlaps that lower the peak.

    The operator at the peak gets an overlap, then the one at the new peak, and so on. The
    search continues from the state with the lowest peak until it finds no lower one.

    Cost: O(tensors + steps) for each overlap tried; at most 16 for each of those kept.
    """
    best = Outcome(storages, loads)
    while program.steps and loads.height[0]:
        state = Outcome(best.storages.copy(), best.loads.copy(), best.num_overlaps)
        improved = False
        for _ in range(_LOOK_AHEAD):
            state.step = state.loads.peak
            state.reason = _overlap(program, state, alignment)
            if state.reason:
                break
            state.num_overlaps += 1
            if state.loads.height < best.loads.height:
                best = Outcome(state.storages.copy(), state.loads.copy(), state.num_overlaps)
                improved = True
        if not improved:
            best.step, best.reason = state.step, state.reason or "it would not lower the load"
            break
    return best


def _overlap(program: Program, state: Outcome, alignment: int) -> str:
    """Put operand and result into a new storage, or return why that is impossible."""
    storages, step = state.storages, program.steps[state.step]
    permitted = permitted_overlap(program, step)
    if not permitted:
        return "the operator is done with no part of its operand before it ends"
    source, result = step.inputs[0], step.outputs[0]
    for other in step.reads:
        if other != source and storages.owner(other) == storages.owner(source):
            return f"{other!r} lies in the storage of {source!r}"
    if not storages.share_memory(source, result):
        return f"{source!r} lies in another memory"
    above, below = storages.owner(source), storages.owner(result)
    # How far above the result's storage the operand's has to begin.
    least = program.tensors[result].size - permitted
    shift = align_up(least - storages.offset(source) + storages.offset(result), alignment)
    reason = storages.why_not_overlapped(result, source, state.step, shift)
    if reason is not None:
        return reason
    if not state.loads.holds(above, below):
        return "the caller owns its memory"
    offsets = {above: max(0, shift), below: max(0, -shift)}
    size = max(storages.tensors[root].size + offset for root, offset in offsets.items())
    name = Names(storages.tensors).take(f"{step.name}/overlap")
    state.loads.merge(name, align_up(size, alignment), tuple(offsets))
    storages.merge(Tensor(name, DType.UINT8, (size,), TensorKind.SCRATCH), offsets)
    return ""
