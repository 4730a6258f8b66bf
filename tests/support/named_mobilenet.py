"""MobileNet v2 with random weights, each named by the layer that reads it."""

from pathlib import Path

import onnx

from bench.zoo.mobilenet_v2 import network


def write(path: Path, size: int = 224, classes: int = 10) -> Path:
    """Write the network of `size` x `size` pixels and return the file."""
    model = network(size, classes)
    renamed: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "Conv":
            renamed[node.input[1]] = f"{node.name}.weight"
            renamed[node.input[2]] = f"{node.name}.bias"
            node.input[1:] = [renamed[name] for name in node.input[1:]]
    for tensor in model.graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    onnx.save(model, path)
    return path
