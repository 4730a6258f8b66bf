"""Batch norms where the published networks have them: the zoo's own are folded."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def with_batch_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network with a batch norm behind every convolution."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    weights = {each.name: each for each in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "Conv":
            continue
        result = node.output[0]
        node.output[0] = f"{result}/before"
        parameters = []
        for name, value in (("scale", 1.0), ("shift", 0.0), ("mean", 0.0), ("variance", 1.0)):
            array = np.full(weights[node.input[1]].dims[0], value, np.float32)
            parameters.append(f"{result}/{name}")
            graph.initializer.append(numpy_helper.from_array(array, parameters[-1]))
        inputs = [node.output[0], *parameters]
        nodes.append(helper.make_node("BatchNormalization", inputs, [result], f"{result}/norm"))
    written = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(written)
    return found
