"""The networks, as PyTorch modules and as ONNX models."""

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

SIDE = 8
"""Pixels of an image in a row."""


def perceptron(first: int = 300, second: int = 100) -> nn.Sequential:
    """Return LeNet-300-100 for 64 pixels, or one of other widths."""
    return nn.Sequential(OrderedDict(
        ip1=nn.Linear(SIDE * SIDE, first), relu1=nn.ReLU(),
        ip2=nn.Linear(first, second), relu2=nn.ReLU(),
        ip3=nn.Linear(second, 10),
    ))  # fmt: skip


def lenet(first: int = 20, second: int = 50, hidden: int = 500) -> nn.Sequential:
    """Return LeNet-5 with convolutions of 3 x 3, or one of other widths."""
    return nn.Sequential(OrderedDict(
        image=nn.Unflatten(1, (1, SIDE, SIDE)),
        conv1=nn.Conv2d(1, first, 3, padding=1), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(first, second, 3, padding=1), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        flat=nn.Flatten(),
        ip1=nn.Linear(4 * second, hidden), relu3=nn.ReLU(),
        ip2=nn.Linear(hidden, 10),
    ))  # fmt: skip


def weights_of(model: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return weights and biases by name."""
    return {name: each.detach().numpy().copy() for name, each in model.named_parameters()}


def num_bytes(model: nn.Module) -> int:
    """Return the bytes of weights and biases as 32-bit floats."""
    return sum(4 * each.numel() for each in model.parameters())


def to_onnx(
    model: nn.Sequential, weights: Mapping[str, NDArray[np.float32]], name: str
) -> onnx.ModelProto:
    """Return the network for one image with weights by parameter name."""
    nodes: list[onnx.NodeProto] = []
    last, is_image = "image", False
    for label, module in model.named_children():
        operands = [last, f"{label}.weight", f"{label}.bias"]
        if isinstance(module, nn.Unflatten):
            is_image = True
            continue
        if isinstance(module, nn.Linear):
            node = helper.make_node("Gemm", operands, [label], transB=1)
        elif isinstance(module, nn.Conv2d):
            node = helper.make_node("Conv", operands, [label], pads=[1, 1, 1, 1])
        elif isinstance(module, nn.MaxPool2d):
            node = helper.make_node(
                "MaxPool", [last], [label], kernel_shape=[2, 2], strides=[2, 2]
            )
        else:
            node = helper.make_node(
                "Flatten" if isinstance(module, nn.Flatten) else "Relu", [last], [label]
            )
        node.name = label
        nodes.append(node)
        last = label
    shape = [1, 1, SIDE, SIDE] if is_image else [1, SIDE * SIDE]
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(each, label) for label, each in weights.items()],
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="arenite"
    )
    onnx.checker.check_model(made)
    return made
