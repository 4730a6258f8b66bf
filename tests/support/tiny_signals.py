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
