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
at once are not: ask for an overlap only where the target's are known.

Source: Blacker et al. 2020, diagonal memory optimisation; the distance is that of the
access trace, worked out without running it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arenite.planner.graph import AttributeValue, Graph, Operator, Tensor

_DENSE = frozenset({"Conv", "CONV_2D"})
_DEPTHWISE = frozenset({"DEPTHWISE_CONV_2D"})
_POOLS = frozenset(
    {"AveragePool", "LpPool", "MaxPool"} | {"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"}
)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of the image under a sliding window."""

    length: int
    count: int
    kernel: int
    stride: int
    dilation: int
    before: int

    def first(self, position: int) -> int | None:
        """Return the lowest index read for an output index, None if all is padding."""
        start = position * self.stride - self.before
        if start < 0:
            start += -(start // self.dilation) * self.dilation
        last = position * self.stride - self.before + (self.kernel - 1) * self.dilation
        return start if start <= min(last, self.length - 1) else None


@dataclass(frozen=True, slots=True)
class _Trace:
    """What a kernel reads last while it writes, in elements.

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
        """Yield what is written less what is still to be read, within the first plane."""
        later: int | None = None
        # Before the last element of a pixel: one channel is left to read, or all of them.
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


def permitted_overlap(graph: Graph, operator: Operator) -> int:
    """Return how many of the result's last bytes may lie on the operand's first.

    The result then begins at or below the operand: it ends at most this many bytes above
    the operand's first. Zero for operators without a sliding window, where the operand is
    read elsewhere in the operator, and where the elements' sizes differ.

    Cost: O(pixels of one plane of the result + planes).
    """
    if not operator.inputs or not any(operator.outputs[:1]) or len(operator.writes) > 1:
        return 0
    source, result = operator.inputs[0], graph.tensors[operator.outputs[0]]
    if operator.inputs.count(source) != 1:
        return 0
    trace = _trace(graph, operator, graph.tensors[source], result)
    bits = result.dtype.bits
    if trace is None or graph.tensors[source].dtype.bits != bits or bits % 8:
        return 0
    return max(0, result.size - trace.distance() * bits // 8)


def _trace(graph: Graph, operator: Operator, source: Tensor, result: Tensor) -> _Trace | None:
    is_dense, is_pool = operator.op_type in _DENSE, operator.op_type in _POOLS
    if not (is_dense or is_pool or operator.op_type in _DEPTHWISE):
        return None
    shapes = [source.shape, result.shape]
    if not is_pool:
        shapes += [graph.tensors[name].shape for name in operator.inputs[1:2] if name]
    if len(shapes) != (2 if is_pool else 3) or any(
        len(shape) != 4 or 0 in shape for shape in shapes
    ):
        return None
    channels_last = operator.op_type.isupper()
    axes = _axes(operator, *(_spatial(shape, channels_last) for shape in shapes))
    if axes is None:
        return None
    rows, columns = axes
    inputs, outputs = (shape[3 if channels_last else 1] for shape in shapes[:2])
    step = inputs if channels_last else 1
    starts = [columns.first(position) for position in range(columns.count)]
    tops = [rows.first(position) for position in range(rows.count)]
    pixels = [
        None if top is None or start is None else (top * columns.length + start) * step
        for top in tops
        for start in starts
    ]
    plane = rows.length * columns.length * step
    batches = range(source.shape[0])
    if channels_last:
        per_channel = outputs if is_dense else max(1, outputs // inputs)
        return _Trace([batch * plane for batch in batches], pixels, outputs, per_channel)
    groups = operator.attributes.get("group", 1) if is_dense else inputs
    if not isinstance(groups, int) or groups < 1 or inputs % groups or outputs % groups:
        return None
    bases = [
        (batch * inputs + output // (outputs // groups) * (inputs // groups)) * plane
        for batch in batches
        for output in range(outputs)
    ]
    return _Trace(bases, pixels, 1, 1)


def _spatial(shape: tuple[int, ...], channels_last: bool) -> tuple[int, int]:
    return (shape[1], shape[2]) if channels_last else (shape[2], shape[3])


def _axes(
    operator: Operator,
    lengths: tuple[int, int],
    counts: tuple[int, int],
    kernel: tuple[int, int] | None = None,
) -> tuple[_Axis, _Axis] | None:
    attributes = operator.attributes
    kernel = kernel or _pair(attributes.get("kernel_shape", ()))
    strides = _pair(attributes.get("strides", (1, 1)))
    dilations = _pair(attributes.get("dilations", (1, 1)))
    if kernel is None or strides is None or dilations is None:
        return None
    mode = attributes.get("padding", attributes.get("auto_pad", "NOTSET"))
    pads = attributes.get("pads")
    axes: list[_Axis] = []
    for axis in range(2):
        extent = (counts[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        missing = max(0, extent - lengths[axis])
        before = 0
        if mode in ("SAME", "SAME_UPPER"):
            before = missing // 2
        elif mode == "SAME_LOWER":
            before = missing - missing // 2
        elif mode == "NOTSET" and isinstance(pads, tuple) and len(pads) == 4:
            before = int(pads[axis])
        axes.append(
            _Axis(
                lengths[axis], counts[axis], kernel[axis], strides[axis], dilations[axis], before
            )
        )
    return axes[0], axes[1]


def _pair(value: AttributeValue) -> tuple[int, int] | None:
    if isinstance(value, tuple) and len(value) == 2 and all(int(each) >= 1 for each in value):
        return int(value[0]), int(value[1])
    return None
