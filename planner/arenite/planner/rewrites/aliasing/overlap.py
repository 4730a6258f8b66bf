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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arenite.planner.operators.operator import Operands
from arenite.planner.program import Program, Step


@dataclass(frozen=True, slots=True)
class _Trace:
    """The order in which a naive kernel reads and writes, in elements.

    The result is written plane by plane, each of `pixels` outputs of `width` elements.

    Attributes:
        bases: For each plane of the result, the first element of the operand it reads from.
        pixels: For each pixel of a plane, the lowest element read, from its base; None
            where it reads nothing.
        width: Elements of the result at a pixel.
        per_channel: Elements of the result for each of the operand's channels at a pixel;
            `width` where each of them reads every channel.
    """

    bases: Sequence[int]
    pixels: Sequence[int | None]
    width: int
    per_channel: int

    def distance(self) -> int:
        """Return how far below the operand the result must begin."""
        lowest = min((pixel for pixel in self.pixels if pixel is not None), default=None)
        if lowest is None:
            return 0
        size = len(self.pixels) * self.width
        inside = max(self._distances(), default=None)
        found = [0]
        if inside is not None:
            found += [plane * size + inside - base for plane, base in enumerate(self.bases)]
        found += [plane * size - (base + lowest) for plane, base in enumerate(self.bases[1:], 1)]
        return max(found)

    def _distances(self) -> Iterator[int]:
        """Yield elements written minus elements still to be read, within the first plane."""
        later: int | None = None
        # Before the last element of a pixel, one channel is still to be read, or all of them.
        rest = self.width - 1 - (self.width - 1) // self.per_channel
        for index in range(len(self.pixels) - 1, -1, -1):
            if later is not None:
                yield (index + 1) * self.width - later
            pixel = self.pixels[index]
            if pixel is None:
                continue
            if self.width > 1:
                yield index * self.width + rest - pixel
            later = pixel if later is None else min(later, pixel)


def permitted_overlap(program: Program, step: Step) -> int:
    """Return how many of the result's last bytes may lie on the operand's first.

    The result then begins at or below the operand: it ends at most this many bytes above
    the operand's first. Zero for operators without a sliding window, where the operand is
    read elsewhere in the step, and where the elements' sizes differ.

    Cost: O(pixels of one plane of the result + planes).
    """
    if len(step.writes) > 1 or step.inputs.count(step.inputs[0] if step.inputs else "") != 1:
        return 0
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None:
        return 0
    trace = _trace(step, operands)
    bits = result.dtype.bits
    if trace is None or source.dtype.bits != bits or bits % 8:
        return 0
    return max(0, result.size - trace.distance() * bits // 8)


def _trace(step: Step, operands: Operands) -> _Trace | None:
    sliding, source, result = step.operator.sliding(operands), operands.source, operands.result
    if sliding is None or source is None or result is None:
        return None
    rows, columns, groups = sliding.rows, sliding.columns, sliding.groups
    inputs, outputs = (tensor.shape[sliding.channel_axis] for tensor in (source, result))
    is_innermost = sliding.channel_axis == len(source.shape) - 1
    pitch = inputs if is_innermost else 1
    starts = [columns.first(position) for position in range(columns.count)]
    tops = [rows.first(position) for position in range(rows.count)]
    pixels = [
        None if top is None or start is None else (top * columns.length + start) * pitch
        for top in tops
        for start in starts
    ]
    plane = rows.length * columns.length * pitch
    batches = range(source.shape[0])
    if is_innermost:
        per_channel = outputs // inputs if groups == inputs else outputs
        return _Trace([batch * plane for batch in batches], pixels, outputs, per_channel)
    bases = [
        (batch * inputs + output // (outputs // groups) * (inputs // groups)) * plane
        for batch in batches
        for output in range(outputs)
    ]
    return _Trace(bases, pixels, 1, 1)
