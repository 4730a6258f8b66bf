"""TFLite models of signals, whose tensors may state shapes that their operators do not make."""

import numpy as np
from tflite import BuiltinOperator as Op
from tflite import TensorType

from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor

FLOAT32, INT32 = TensorType.FLOAT32, TensorType.INT32
VALID = 1
WINDOW = 8
FILTERS = 3


def integers(name: str, *values: int, shape: tuple[int, ...] = ()) -> TinyTensor:
    return TinyTensor(name, shape or (len(values),), INT32, np.array(values, "<i4").tobytes())


def front_end(samples: int, frames: int, *, stride: int = 4) -> TinySubgraph:
    """Frames of a signal through a bank of filters, and the largest of each.

    Args:
        samples: Length of the signal that the file states.
        frames: Number of frames that it states.
        stride: Samples from one frame to the next.
    """
    rng = np.random.default_rng(0)
    bank = rng.normal(size=(FILTERS, 1, WINDOW, 1)).astype("<f4").tobytes()
    tensors = [
        TinyTensor("x", (1, samples), FLOAT32, signature=(1, -1)),
        integers("image", 1, 1, -1, 1),
        TinyTensor("signal", (1, 1, samples, 1), FLOAT32),
        TinyTensor("bank", (FILTERS, 1, WINDOW, 1), FLOAT32, bank),
        TinyTensor("bias", (FILTERS,), FLOAT32, bytes(4 * FILTERS)),
        TinyTensor("frames", (1, 1, frames, FILTERS), FLOAT32),
        TinyTensor("power", (1, 1, frames, FILTERS), FLOAT32),
        integers("axis", 3),
        TinyTensor("y", (1, 1, frames), FLOAT32),
    ]
    window = {"StrideH": 1, "StrideW": stride, "Padding": VALID}
    operators = [
        TinyOperator(Op.RESHAPE, [0, 1], [2]),
        TinyOperator(
            Op.CONV_2D, [2, 3, 4], [5],
            options=("Conv2DOptions", {**window, "DilationHFactor": 1, "DilationWFactor": 1}),
        ),
        TinyOperator(Op.ABS, [5], [6]),
        TinyOperator(Op.REDUCE_MAX, [6, 7], [8]),
    ]  # fmt: skip
    return TinySubgraph(tensors, operators, [0], [8])


def dilated(stated: int) -> TinySubgraph:
    """A dilated convolution along a signal, as converters write one."""
    rng = np.random.default_rng(0)
    bank = rng.normal(size=(FILTERS, 1, 3, 2)).astype("<f4").tobytes()
    tensors = [
        TinyTensor("x", (1, 1, 16, 2), FLOAT32),
        integers("blocks", 1, 2),
        integers("pads", 0, 0, 2, 2, shape=(2, 2)),
        TinyTensor("cut", (2, 1, stated + 2, 2), FLOAT32),
        TinyTensor("bank", (FILTERS, 1, 3, 2), FLOAT32, bank),
        TinyTensor("bias", (FILTERS,), FLOAT32, bytes(4 * FILTERS)),
        TinyTensor("inner", (2, 1, stated, FILTERS), FLOAT32),
        integers("crops", 0, 0, 0, 0, shape=(2, 2)),
        TinyTensor("y", (1, 1, 2 * stated, FILTERS), FLOAT32),
    ]
    plain = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    operators = [
        TinyOperator(Op.SPACE_TO_BATCH_ND, [0, 1, 2], [3]),
        TinyOperator(
            Op.CONV_2D, [3, 4, 5], [6], options=("Conv2DOptions", {**plain, "Padding": VALID})
        ),
        TinyOperator(Op.BATCH_TO_SPACE_ND, [6, 1, 7], [8]),
    ]
    return TinySubgraph(tensors, operators, [0], [8])


def framed(samples: int) -> TinySubgraph:
    """Frames of 8 samples, 4 apart, as converters write them: indices computed from the shape.

    What depends on the length the file states as one long, as it does not know.
    """
    tensors = [
        TinyTensor("x", (1, samples), FLOAT32),
        TinyTensor("shape", (2,), INT32),
        integers("lengths", 1, 1, 0),
        integers("one", 1, shape=(1,)),
        TinyTensor("batch", (1,), INT32),
        TinyTensor("length", (1,), INT32),
        TinyTensor("rest", (0,), INT32),
        TinyTensor("nothing", (0,), INT32, bytes(0), buffer=0),
        TinyTensor("samples", (), INT32),
        TinyTensor("hop", (), INT32, np.array(4, "<i4").tobytes()),
        TinyTensor("blocks", (), INT32),
        TinyTensor("cut", (2,), INT32),
        TinyTensor("whole", (3,), INT32),
        TinyTensor("in blocks", (1, 1, 4), FLOAT32),
        TinyTensor("less", (), INT32, np.array(1, "<i4").tobytes()),
        TinyTensor("count", (), INT32),
        TinyTensor("zero", (), INT32, np.array(0, "<i4").tobytes()),
        TinyTensor("numbers", (1,), INT32),
        integers("column", -1, 1),
        TinyTensor("firsts", (1, 1), INT32),
        integers("offsets", 0, 1, shape=(1, 2)),
        TinyTensor("indices", (1, 2), INT32),
        TinyTensor("gathered", (1, 1, 2, 4), FLOAT32),
        integers("flat", 1, -1, 8),
        TinyTensor("frames", (1, 1, 8), FLOAT32),
        TinyTensor("y", (1, 1, 8), FLOAT32),
    ]
    at = {tensor.name: index for index, tensor in enumerate(tensors)}

    def made(
        code: int, reads: str, makes: str, options: tuple[str, dict[str, int]] | None = None
    ) -> TinyOperator:
        names = (reads.split(", "), makes.split(", "))
        inputs, outputs = ([at[name] for name in each] for each in names)
        return TinyOperator(code, inputs, outputs, options=options)

    operators = [
        made(Op.SHAPE, "x", "shape", ("ShapeOptions", {"OutType": INT32})),
        made(
            Op.SPLIT_V, "shape, lengths, zero", "batch, length, rest",
            ("SplitVOptions", {"NumSplits": 3}),
        ),
        made(Op.RESHAPE, "length, nothing", "samples"),
        made(Op.FLOOR_DIV, "samples, hop", "blocks"),
        made(Op.PACK, "blocks, hop", "cut", ("PackOptions", {"ValuesCount": 2, "Axis": 0})),
        made(Op.CONCATENATION, "batch, cut", "whole", ("ConcatenationOptions", {"Axis": 0})),
        made(Op.RESHAPE, "x, whole", "in blocks"),
        made(Op.SUB, "blocks, less", "count"),
        made(Op.RANGE, "zero, count, less", "numbers"),
        made(Op.RESHAPE, "numbers, column", "firsts"),
        made(Op.ADD, "firsts, offsets", "indices"),
        made(Op.GATHER, "in blocks, indices", "gathered", ("GatherOptions", {"Axis": 1})),
        made(Op.RESHAPE, "gathered, flat", "frames"),
        made(Op.ABS, "frames", "y"),
    ]  # fmt: skip
    return TinySubgraph(tensors, operators, [0], [at["y"]])
