"""ONNX networks as PyTorch computes them: an oracle for gradients."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import torch
from numpy.typing import NDArray
from torch.nn import functional

Values = dict[str, torch.Tensor]


def gradients(
    model: onnx.ModelProto,
    feeds: Mapping[str, NDArray[Any]],
    loss: str,
    *,
    dtype: torch.dtype,
    batch_statistics: bool,
) -> tuple[float, dict[str, NDArray[Any]]]:
    """Return the loss and the gradient of every weight that has one."""
    weights = {
        name: torch.tensor(each).to(dtype).requires_grad_()
        for name, each in first_weights(model).items()
    }
    value = loss_of(model, weights, feeds, loss, batch_statistics=batch_statistics)
    value.backward()
    found = {name: each.grad.numpy() for name, each in weights.items() if each.grad is not None}
    return float(value.detach()), found


def first_weights(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """Return the floating-point constants of a network by name, scalars left out."""
    return {
        tensor.name: np.array(onnx.numpy_helper.to_array(tensor))
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    }


def loss_of(
    model: onnx.ModelProto,
    weights: Mapping[str, torch.Tensor],
    feeds: Mapping[str, NDArray[Any]],
    loss: str,
    *,
    batch_statistics: bool = False,
) -> torch.Tensor:
    """Return the loss of a network whose last Softmax or Sigmoid is left to it."""
    dtype = next(iter(weights.values())).dtype
    values: Values = {
        tensor.name: torch.tensor(np.array(onnx.numpy_helper.to_array(tensor)))
        for tensor in model.graph.initializer
    }
    values |= weights
    for port in model.graph.input:
        if port.name not in values:
            values[port.name] = torch.tensor(feeds[port.name]).to(dtype)
    for node in model.graph.node:
        how = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        made = _run(node.op_type, inputs, how, batch_statistics)
        values.update(zip(node.output, made, strict=False))
    last = values[model.graph.output[0].name]
    if loss == "cross-entropy":
        return functional.cross_entropy(last, torch.tensor(feeds["labels"]))
    if loss == "bce":
        targets = torch.tensor(feeds["targets"]).to(dtype)
        return functional.binary_cross_entropy_with_logits(last, targets)
    return functional.mse_loss(last, torch.tensor(feeds["targets"]).to(dtype))


def _run(op_type: str, inputs: list[Any], how: dict[str, Any], batch: bool) -> tuple[Any, ...]:
    x: Any = inputs[0] if inputs else None
    pads = how.get("pads", [0, 0, 0, 0])[:2]
    match op_type:
        case "Conv":
            return (functional.conv2d(
                x, inputs[1], inputs[2] if len(inputs) > 2 else None, how.get("strides", 1),
                pads, groups=how.get("group", 1),
            ),)  # fmt: skip
        case "ConvTranspose":
            return (functional.conv_transpose2d(x, *inputs[1:], stride=how["strides"]),)
        case "MaxPool":
            return (functional.max_pool2d(x, how["kernel_shape"], how["strides"], pads),)
        case "BatchNormalization":
            scale, shift, mean, variance = inputs[1:]
            return (functional.batch_norm(
                x, mean.detach().clone(), variance.detach().clone(), scale, shift, batch
            ),)  # fmt: skip
        case "Gemm":
            return (functional.linear(x, *inputs[1:]),)
        case "GlobalAveragePool":
            return (x.mean((2, 3), keepdim=True),)
        case "Constant":
            return (torch.tensor(np.array(onnx.numpy_helper.to_array(how["value"]))),)
        case "GRU" | "LSTM":
            return _recurrent(op_type, inputs)
        case "Softmax" | "Sigmoid":  # the last, which the loss computes itself
            return (x,)
        case "Reshape":
            return (x.reshape([x.shape[0], *map(int, inputs[1][1:])]),)
        case "Squeeze":
            return (x.squeeze(0),)
        case "Clip":
            return (torch.clamp(x, float(inputs[1]), float(inputs[2])),)
        case "Concat":
            return (torch.cat(inputs, how["axis"]),)
    simple = {"Relu": torch.relu, "Add": torch.add, "Flatten": lambda x: x.flatten(1)}
    return (simple[op_type](*inputs),)


def _recurrent(op_type: str, inputs: list[Any]) -> tuple[Any, ...]:
    """Run a layer; ONNX has the gates in another order than PyTorch."""
    x, w, r, b = inputs
    order = (1, 0, 2) if op_type == "GRU" else (0, 2, 3, 1)
    hidden = r.shape[2]

    def turned(matrix: Any) -> Any:
        parts = matrix.reshape(len(order), hidden, *matrix.shape[1:])
        return parts[list(order)].reshape(matrix.shape)

    halves = b[0].chunk(2)
    weights = [turned(each) for each in (w[0], r[0], *halves)]
    zeros = torch.zeros(1, x.shape[1], hidden, dtype=x.dtype)
    options = (True, 1, 0.0, True, False, False)
    if op_type == "GRU":
        return tuple(torch.gru(x, zeros, weights, *options))
    return tuple(torch.lstm(x, (zeros, zeros), weights, *options))
