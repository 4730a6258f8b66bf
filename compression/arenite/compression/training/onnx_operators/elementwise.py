"""Operators that compute element by element, activations among them."""

from collections.abc import Callable, Mapping
from functools import reduce

import onnx
import torch
from torch.nn import functional

from arenite.compression.training.onnx_operators.call import Call, Operator


def _unary(function: "Callable[[torch.Tensor], torch.Tensor]") -> Operator:
    return lambda call: function(call[0])


def _binary(function: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]") -> Operator:
    return lambda call: function(call[0], call[1])


def _of_all(function: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]") -> Operator:
    return lambda call: reduce(function, (call[index] for index in range(len(call.inputs))))


def _divide(call: Call) -> "torch.Tensor":
    is_float = call[0].is_floating_point()
    return torch.div(call[0], call[1], rounding_mode=None if is_float else "trunc")


def _clip(call: Call) -> "torch.Tensor":
    low = call.attributes.get("min", call.optional(1))
    high = call.attributes.get("max", call.optional(2))
    return call[0] if low is None and high is None else torch.clamp(call[0], low, high)


def _prelu(call: Call) -> "torch.Tensor":
    return torch.where(call[0] < 0, call[0] * call[1], call[0])


def _hard_sigmoid(call: Call) -> "torch.Tensor":
    return torch.clamp(call.number("alpha", 0.2) * call[0] + call.number("beta", 0.5), 0, 1)


def _gelu(call: Call) -> "torch.Tensor":
    approximate = call.attributes.get("approximate", b"none").decode()
    return functional.gelu(call[0], approximate=approximate)


def _softmax(function: "Callable[..., torch.Tensor]") -> Operator:
    def apply(call: Call) -> "torch.Tensor":
        if call.opset >= 13:
            return function(call[0], dim=call.integer("axis", -1))
        # Before opset 13: over all axes from this one on, as if they were one.
        flat = call[0].flatten(call.integer("axis", 1) % call[0].ndim)
        return function(flat, dim=-1).reshape(call[0].shape)

    return apply


def _dropout(call: Call) -> "torch.Tensor":
    ratio = call.optional(1)
    share = call.number("ratio", 0.5) if ratio is None else float(ratio)
    return functional.dropout(call[0], share, training=call.is_training)


def _cast(call: Call) -> "torch.Tensor":
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(call.integer("to", 1))
    return call[0].to(getattr(torch, numpy_type.name))


ELEMENTWISE: Mapping[str, Operator] = {
    "Abs": _unary(torch.abs),
    "Add": _binary(torch.add),
    "Cast": _cast,
    "Clip": _clip,
    "Cos": _unary(torch.cos),
    "Div": _divide,
    "Dropout": _dropout,
    "Elu": lambda call: functional.elu(call[0], call.number("alpha", 1.0)),
    "Erf": _unary(torch.erf),
    "Exp": _unary(torch.exp),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(functional.hardswish),
    "Identity": lambda call: call[0],
    "LeakyRelu": lambda call: functional.leaky_relu(call[0], call.number("alpha", 0.01)),
    "Log": _unary(torch.log),
    "LogSoftmax": _softmax(functional.log_softmax),
    "Max": _of_all(torch.maximum),
    "Min": _of_all(torch.minimum),
    "Mish": _unary(functional.mish),
    "Mul": _binary(torch.mul),
    "Neg": _unary(torch.neg),
    "PRelu": _prelu,
    "Pow": _binary(torch.pow),
    "Reciprocal": _unary(torch.reciprocal),
    "Relu": _unary(torch.relu),
    "Selu": lambda call: (
        call.number("gamma", 1.0507009873554805)
        * functional.elu(call[0], call.number("alpha", 1.6732632423543772))
    ),
    "Sigmoid": _unary(torch.sigmoid),
    "Sin": _unary(torch.sin),
    "Softmax": _softmax(functional.softmax),
    "Softplus": _unary(functional.softplus),
    "Sqrt": _unary(torch.sqrt),
    "Sub": _binary(torch.sub),
    "Sum": _of_all(torch.add),
    "Tanh": _unary(torch.tanh),
    "Where": lambda call: torch.where(call[0], call[1], call[2]),
}
