"""How far a result may reach into its operand: diagonal memory optimisation.

An operator that slides a window over an image is done with the top of the image long
before it writes the bottom of its result. So the result may begin a little below the
operand and end inside it, if the kernel computes row by row::

    result   |=================|
    operand       |==================|
             <----> distance: each byte is read for the last time before it is overwritten

The kernels meant are the naive ones, such as the reference kernels of TensorFlow Lite
Micro: one pass over the result from its first element to its last, each element read in
full before it is written. Kernels that work in tiles, in threads or on several elements
at once do not qualify: allow overlaps only where the target's kernels are known.

Source: Blacker et al. 2020, diagonal memory optimisation; the distance is that of the
access trace, computed without running it.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.programs.program import Names, Program, Step
from arenite.planner.rewrites.aliasing.loads import Loads
from arenite.planner.rewrites.aliasing.storages import Storages
from arenite.planner.sizes import Size, Sizes, at, depends, largest, with_sizes
from arenite.planner.tensors import DType, Tensor, TensorKind
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class _Trace:
    """The order in which a naive kernel reads and writes, in elements.

    The result is written plane by plane, row by row, a pixel of `width` elements after the other.
    What is read for a pixel begins at the place of its row and that of its column together, so
    the largest distance is found by rows and by columns apart.

    Attributes:
        bases: For each plane of the result, the first element of the operand it reads from.
        rows: For each row of a plane, the lowest element read, from its base; None where it reads
            nothing.
        columns: For each column, the lowest element read, from its row's; None where it reads
            nothing.
        width: Elements of the result at a pixel.
        per_channel: Elements of the result for each of the operand's channels at a pixel;
            `width` where each of them reads every channel.
    """

    bases: Sequence[int]
    rows: Sequence[int | None]
    columns: Sequence[int | None]
    width: int
    per_channel: int

    def distance(self) -> int:
        """Return how far below the operand the result must begin.

        Cost: O(planes + rows + columns).
        """
        tops = [row for row in self.rows if row is not None]
        starts = [column for column in self.columns if column is not None]
        if not tops or not starts:
            return 0
        lowest = min(tops) + min(starts)
        size = len(self.rows) * len(self.columns) * self.width
        inside = max(self._distances(min(starts)), default=None)
        found = [0]
        if inside is not None:
            found += [plane * size + inside - base for plane, base in enumerate(self.bases)]
        found += [plane * size - (base + lowest) for plane, base in enumerate(self.bases[1:], 1)]
        return max(found)

    def _distances(self, start: int) -> Iterator[int]:
        """Yield the most elements written less elements still to be read, in the first plane.

        Args:
            start: The lowest element that some column reads, from its row's.
        """
        row = len(self.columns) * self.width
        # The most that is written before a row, less where that reads.
        ahead = max(index * row - top for index, top in enumerate(self.rows) if top is not None)
        if self.width > 1:
            # Before the last element of a pixel, one channel is still to be read, or all of them.
            rest = self.width - 1 - (self.width - 1) // self.per_channel
            yield from (
                ahead + index * self.width + rest - column
                for index, column in enumerate(self.columns)
                if column is not None
            )
        yield from (
            ahead + (index + 1) * self.width - column
            for index, column in enumerate(_lowest_after(self.columns))
            if column is not None
        )
        yield from (
            (index + 1) * row - (top + start)
            for index, top in enumerate(_lowest_after(self.rows))
            if top is not None
        )


def _lowest_after(places: Sequence[int | None]) -> list[int | None]:
    """Return for each place the lowest of those behind it, None if there are none."""
    found: list[int | None] = []
    lowest: int | None = None
    for place in reversed(places):
        found.append(lowest)
        if place is not None:
            lowest = place if lowest is None else min(lowest, place)
    return found[::-1]


def permitted_overlap(program: Program, step: Step) -> int:
    """Return how many of the result's last bytes may lie on the operand's first.

    The result then begins at or below the operand: it ends at most this many bytes above
    the operand's first. Zero for operators without a sliding window, where the operand is
    read elsewhere in the step, and where the elements' sizes differ. Where lengths depend on
    dimensions the result begins as far below as it must at any of their values; zero if these are
    too many to try.

    Cost: O(rows + columns + planes of the result), for each value of the dimensions.
    """
    if len(step.writes) > 1 or step.inputs.count(step.inputs[0] if step.inputs else "") != 1:
        return 0
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None:
        return 0
    bits = result.dtype.bits
    if source.dtype.bits != bits or bits % 8 or step.operator.sliding(operands) is None:
        return 0
    distances: list[int] = []
    for sizes in _values(program, step, operands):
        if sizes:
            here = partial(at, sizes=sizes)
            operator, found = with_sizes((step.operator, operands), here)
        else:
            operator, found = step.operator, operands
        if (trace := _trace(operator, found)) is not None:  # none where a tensor is empty
            distances.append(trace.distance())
    if not distances:
        return 0
    return max(0, int(result.size) - max(distances) * bits // 8)


_MOST_LINES = 1 << 19
"""Rows, columns and channels of an operator's results at all sizes; each is looked at."""


def _values(program: Program, step: Step, operands: Operands) -> Iterator[Sizes]:
    """Yield all values of the dimensions that a step depends on; of no dimension one without any.

    Nothing if they are too many.
    """
    names: set[str] = set()

    def note(size: Size) -> int:
        names.update(size.expression.names)
        return size

    with_sizes((step.operator, operands), note)
    used = [each for each in program.dimensions if each.name in names]
    assert operands.result is not None
    if used and sum(map(int, operands.result.shape)) * math.prod(map(len, used)) > _MOST_LINES:
        return
    for values in itertools.product(*(each.values for each in used)):
        yield dict(zip((each.name for each in used), values, strict=True))


def _trace(operator: Operator, operands: Operands) -> _Trace | None:
    sliding, source, result = operator.sliding(operands), operands.source, operands.result
    if sliding is None or source is None or result is None:
        return None
    rows, columns, groups = sliding.rows, sliding.columns, sliding.groups
    inputs, outputs = (tensor.shape[sliding.channel_axis] for tensor in (source, result))
    is_innermost = sliding.channel_axis == len(source.shape) - 1
    pitch = inputs if is_innermost else 1
    starts = _scaled(map(columns.first, range(columns.count)), pitch)
    tops = _scaled(map(rows.first, range(rows.count)), columns.length * pitch)
    plane = rows.length * columns.length * pitch
    batches = range(source.shape[0])
    if is_innermost:
        per_channel = outputs // inputs if groups == inputs else outputs
        return _Trace([batch * plane for batch in batches], tops, starts, outputs, per_channel)
    bases = [
        (batch * inputs + output // (outputs // groups) * (inputs // groups)) * plane
        for batch in batches
        for output in range(outputs)
    ]
    return _Trace(bases, tops, starts, 1, 1)


def _scaled(places: Iterable[int | None], size: int) -> list[int | None]:
    return [None if place is None else place * size for place in places]


_LOOK_AHEAD = 16
"""Number of overlaps to try without reaching a lower peak."""


@dataclass(slots=True)
class OverlapSearch:
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
) -> OverlapSearch:
    """Return the storages with the overlaps that lower the peak.

    The operator at the peak gets an overlap, then the one at the new peak, and so on. The
    search continues from the state with the lowest peak until it finds no lower one.

    Cost: O(tensors + steps) for each overlap tried; at most 16 for each of those kept.
    """
    best = OverlapSearch(storages, loads)
    while program.steps and loads.height[0]:
        state = OverlapSearch(best.storages.copy(), best.loads.copy(), best.num_overlaps)
        improved = False
        for _ in range(_LOOK_AHEAD):
            state.step = state.loads.peak
            state.reason = _overlap(program, state, alignment)
            if state.reason:
                break
            state.num_overlaps += 1
            if state.loads.height < best.loads.height:
                best = OverlapSearch(state.storages.copy(), state.loads.copy(), state.num_overlaps)
                improved = True
        if not improved:
            best.step, best.reason = state.step, state.reason or "sharing would not lower the load"
            break
    return best


def _overlap(program: Program, state: OverlapSearch, alignment: int) -> str:
    """Put operand and result into a new storage, or return why that is impossible."""
    storages, step = state.storages, program.steps[state.step]
    permitted = permitted_overlap(program, step)
    if not permitted:
        return "the operator reads its operand until its end"
    source, result = step.inputs[0], step.outputs[0]
    for other in step.reads:
        if other != source and storages.owner(other) == storages.owner(source):
            return f"{other!r} lies in the storage of {source!r}"
    if not storages.share_memory(source, result):
        return f"{source!r} lies in another memory"
    if depends(storages.offset(source)) or depends(storages.offset(result)):
        return "their places depend on the sizes of the run"
    above, below = storages.owner(source), storages.owner(result)
    # How far above the result's storage the operand's has to begin.
    least = int(program.tensors[result].size) - permitted
    shift = align_up(least - storages.offset(source) + storages.offset(result), alignment)
    reason = storages.why_not_overlapped(result, source, state.step, shift)
    if reason is not None:
        return reason
    if not state.loads.holds(above, below):
        return "the caller owns the memory"
    offsets = {above: max(0, shift), below: max(0, -shift)}
    size = largest(*(storages.tensors[root].size + offset for root, offset in offsets.items()))
    name = Names(storages.tensors).take(f"{step.name}/overlap")
    state.loads.merge(name, int(align_up(size, alignment)), tuple(offsets))
    storages.merge(Tensor(name, DType.UINT8, (size,), TensorKind.SCRATCH), offsets)
    return ""


def permit_overlaps(program: Program, problem: Problem) -> Problem:
    """Return the problem with the overlaps that the program's operators allow.

    A result may overlap its operand as far as `permitted_overlap` says if its storage begins
    at that step and the operand's ends there, and neither has an outline. Only for targets
    with naive kernels.

    Args:
        program: The program in its final order, with storage shared.

    Cost: O(tensors), and the cost of `permitted_overlap` for each operator.
    """
    by_name = {record.name: record for record in problem.records}
    records = dict(by_name)
    kept = {program.root(name)[0] for name in program.output_tensors}
    kept |= program.state_storages
    for number, step in enumerate(program.steps):
        permitted = permitted_overlap(program, step)
        if not permitted:
            continue
        source, result = step.inputs[0], step.outputs[0]
        (above, source_offset), (below, result_offset) = program.root(source), program.root(result)
        reads = [program.root(name)[0] for name in step.reads]
        operand, written = by_name.get(above), by_name.get(below)
        if operand is None or written is None or reads.count(above) > 1 or above == below:
            continue
        if operand.outline or written.outline:
            continue
        if depends(source_offset) or depends(result_offset):
            continue
        if above in kept or operand.end != number + 1 or written.start != number:
            continue
        distance = int(program.tensors[result].size) - permitted - source_offset + result_offset
        size = min(written.size - distance, written.size - 1, operand.size - 1)
        if size >= 1:
            records[below] = _permitting(records[below], PermittedOverlap(above, size))
    return replace(problem, records=tuple(records.values()))


def _permitting(record: UsageRecord, overlap: PermittedOverlap) -> UsageRecord:
    return replace(record, overlaps=(*record.overlaps, overlap))
