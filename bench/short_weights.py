"""Networks whose weights are stored in 16 bits, as exporters write them: a Cast behind each."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

KINDS = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def with_short_weights(model: onnx.ModelProto, kind: str = "float16") -> onnx.ModelProto:
    """Return a model with its matrices and filters as `float16` or `bfloat16`.

    Those stay of which a number would become infinite. Floats of `bfloat16` are the nearest ones
    towards zero.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    casts = []
    for tensor in list(graph.initializer):
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) < 2:
            continue
        words = _words(numpy_helper.to_array(tensor), kind)
        if words is None:
            continue
        name = f"{tensor.name}/{kind}"
        short = helper.make_tensor(name, KINDS[kind], tensor.dims, words.tobytes(), raw=True)
        casts.append(helper.make_node("Cast", [name], [tensor.name], to=TensorProto.FLOAT))
        graph.initializer.append(short)
        graph.initializer.remove(tensor)
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*casts, *nodes])
    return made


def _words(array: NDArray[Any], kind: str) -> NDArray[Any] | None:
    if kind == "bfloat16":
        return (np.ascontiguousarray(array).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    with np.errstate(over="ignore"):
        halves = array.astype(np.float16)
    return halves if np.isfinite(halves).all() else None
