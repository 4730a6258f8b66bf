"""Arrays of 16-bit floats: rounded as a model file has them, and as constants of one step."""

import numpy as np
import onnx
from numpy.typing import NDArray

from bench.short_weights import with_short_weights
from support.one_step import Given
from support.tiny_onnx import parse, with_random_weights

KINDS = ("float16", "bfloat16")


def shortened(array: NDArray[np.float32], kind: str) -> NDArray[np.float32]:
    """Return the nearest floats of 16 bits, as 32-bit floats.

    Of bfloat16 they are those below, but the first, which is too small for float16.
    """
    if kind == "float16":
        return array.astype(np.float16).astype(np.float32)
    exact = (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    exact.flat[0] = 2.0**-40
    return exact


def stored(array: NDArray[np.float32], kind: str) -> Given:
    """Return a constant of 16-bit floats, of an array that these hold exactly."""
    if kind == "float16":
        return Given(array.shape, kind, array.astype(np.float16))
    words = (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return Given(array.shape, kind, words)


def shortened_model(text: str, kind: str) -> onnx.ModelProto:
    """Return a model whose matrices are of 16 bits, each behind a Cast as exporters write.

    The first element is not of the other kind.
    """
    model = with_random_weights(parse(text))
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor).copy()
        if array.ndim > 1:
            array.flat[0] = 2.0**-40 if kind == "bfloat16" else 1 + 2.0**-9
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return with_short_weights(model, kind)
