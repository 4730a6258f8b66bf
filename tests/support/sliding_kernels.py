"""Naive kernels of operators that slide a window: one pass over the result, row-major."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

CHANNELS_LAST = ("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D")
CHANNELS_FIRST = ("Conv", "AveragePool")


class Image(NamedTuple):
    """The extents of a batch of images, whatever their layout."""

    batch: int
    height: int
    width: int
    channels: int

    def shape(self, channels_last: bool) -> tuple[int, ...]:
        """Return them as a layout orders them."""
        batch, height, width, channels = self
        return tuple(self) if channels_last else (batch, channels, height, width)


class Kernel:
    """An operator as a list of reads for each element of the result.

    Attributes:
        op_type: Its type.
        source: What it reads.
        result: What it writes.
        weights: Shape of its weights, None if it has none.
        attributes: As the importer states them.
        reads: For each element of the result in turn, those of the operand it reads.
    """

    def __init__(
        self,
        op_type: str,
        source: "Image",
        outputs: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilations: tuple[int, int],
        padding: Any,
    ) -> None:
        self.op_type, self.source = op_type, source
        channels_last = op_type in CHANNELS_LAST
        lengths = source[1:3]
        spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
        if channels_last:
            counts, before = _tflite(padding, lengths, spans, strides)
            self.attributes = {"auto_pad": padding}
        else:
            before, after = padding[:2], padding[2:]
            counts = [
                (n + b + a - e) // s + 1
                for n, b, a, e, s in zip(lengths, before, after, spans, strides, strict=True)
            ]
            self.attributes = {"pads": padding}
        assume(min(counts) >= 1)
        height, width = counts
        self.result = Image(source.batch, height, width, outputs)
        self.attributes |= {"strides": strides, "dilations": dilations}
        per_channel = 0
        if op_type in ("MAX_POOL_2D", "AveragePool"):
            self.attributes["kernel_shape"], self.weights, per_channel = window, None, 1
        elif op_type == "CONV_2D":
            self.weights = (outputs, *window, source.channels)
        elif op_type == "DEPTHWISE_CONV_2D":
            self.weights, per_channel = (1, *window, outputs), outputs // source.channels
        else:
            groups = source.channels if outputs % source.channels == 0 else 1
            self.attributes["group"] = groups
            self.weights = (outputs, source.channels // groups, *window)
            per_channel = outputs // source.channels if groups == source.channels else 0
        shape = source.shape(channels_last)
        self.reads = []
        for index in np.ndindex(*self.result.shape(channels_last)):
            n, y, x, o = index if channels_last else (index[0], *index[2:], index[1])
            channels = [o // per_channel] if per_channel else range(source.channels)
            rows, columns = (
                [p * s - b + k * d for k in range(taps)]
                for p, s, b, d, taps in zip(
                    (y, x), strides, before, dilations, window, strict=True
                )
            )
            self.reads.append(
                [
                    int(np.ravel_multi_index(Image(n, r, c, i).shape(channels_last), shape))
                    for r in rows if 0 <= r < source.height
                    for c in columns if 0 <= c < source.width
                    for i in channels
                ]
            )  # fmt: skip

    def run(self, source: np.ndarray, result: np.ndarray) -> None:
        """Compute the result, both given as runs of elements that may share memory."""
        for position, read in enumerate(self.reads):
            total = 7 * position
            for weight, address in enumerate(read, 3):
                total += weight * int(source[address])
            result[position] = total % 1_000_003


def _tflite(
    padding: str, lengths: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], tuple[int, ...]]:
    if padding == "VALID":
        counts = [(n - e) // s + 1 for n, e, s in zip(lengths, spans, strides, strict=True)]
        return counts, (0, 0)
    counts = [-(-n // s) for n, s in zip(lengths, strides, strict=True)]
    missing = [
        max(0, (c - 1) * s + e - n)
        for c, s, e, n in zip(counts, strides, spans, lengths, strict=True)
    ]
    return counts, tuple(m // 2 for m in missing)


def pairs(least: int, most: int) -> st.SearchStrategy[tuple[int, int]]:
    """Return a value for the height and one for the width."""
    return st.tuples(st.integers(least, most), st.integers(least, most))


@st.composite
def images(draw: st.DrawFn) -> Image:
    """Return small extents."""
    return Image(draw(st.integers(1, 2)), *draw(pairs(1, 6)), draw(st.integers(1, 3)))


@st.composite
def kernels(draw: st.DrawFn, source: Image, op_types: Sequence[str]) -> Kernel:
    """Return a kernel of one of the types that reads `source`."""
    op_type = draw(st.sampled_from(op_types))
    outputs = source.channels
    if op_type == "DEPTHWISE_CONV_2D":
        outputs *= draw(st.integers(1, 3))
    elif op_type in ("CONV_2D", "Conv"):
        outputs = draw(st.integers(1, 6))
    padding: Any = draw(st.sampled_from(["SAME_UPPER", "VALID"]))
    if op_type in CHANNELS_FIRST:
        padding = draw(pairs(0, 2)) + draw(pairs(0, 2))
    return Kernel(
        op_type, source, outputs, draw(pairs(1, 3)), draw(pairs(1, 3)), draw(pairs(1, 2)), padding
    )
