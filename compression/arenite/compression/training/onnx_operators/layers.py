"""Products, convolutions, pools and normalisations."""

from collections.abc import Mapping, Sequence
from itertools import chain
from math import inf

import torch
from torch.nn import functional

from arenite.compression.training.onnx_operators.call import Call, Operator

_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
_TRANSPOSED = (
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)
_MAX_POOLS = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_MEAN_POOLS = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)


def _gemm(call: Call) -> "torch.Tensor":
    left = call[0].T if call.integer("transA", 0) else call[0]
    right = call[1].T if call.integer("transB", 0) else call[1]
    product = call.number("alpha", 1.0) * (left @ right)
    bias = call.optional(2)
    return product if bias is None else product + call.number("beta", 1.0) * bias


def _window(call: Call, kernel: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return strides, dilations and pads, all begins before all ends."""
    axes = len(kernel)
    strides = call.ints("strides") or [1] * axes
    dilations = call.ints("dilations") or [1] * axes
    mode = call.attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        return strides, dilations, call.ints("pads") or [0] * (2 * axes)
    if mode == "VALID":
        return strides, dilations, [0] * (2 * axes)
    begins, ends = [], []
    for size, length, stride, dilation in zip(
        call[0].shape[2:], kernel, strides, dilations, strict=True
    ):
        spans = (-(-size // stride) - 1) * stride + (length - 1) * dilation + 1
        pad = max(spans - size, 0)
        less, more = pad // 2, pad - pad // 2
        begins.append(less if mode == "SAME_UPPER" else more)
        ends.append(more if mode == "SAME_UPPER" else less)
    return strides, dilations, begins + ends


def _padded(x: "torch.Tensor", pads: Sequence[int], value: float = 0.0) -> "torch.Tensor":
    """Return images with pads, which PyTorch takes from the last axis on, pair by pair."""
    if not any(pads):
        return x
    axes = len(pads) // 2
    pairs = zip(reversed(pads[:axes]), reversed(pads[axes:]), strict=True)
    return functional.pad(x, list(chain.from_iterable(pairs)), value=value)


def _conv(call: Call) -> "torch.Tensor":
    kernel = call[1].shape[2:]
    strides, dilations, pads = _window(call, kernel)
    return _CONVOLUTIONS[len(kernel) - 1](
        _padded(call[0], pads), call[1], call.optional(2), stride=strides,
        dilation=dilations, groups=call.integer("group", 1),
    )  # fmt: skip


def _conv_transpose(call: Call) -> "torch.Tensor":
    kernel = call[1].shape[2:]
    strides, dilations, pads = _window(call, kernel)
    extra = call.ints("output_padding") or [0] * len(kernel)
    whole = _TRANSPOSED[len(kernel) - 1](
        call[0], call[1], call.optional(2), stride=strides, output_padding=extra,
        dilation=dilations, groups=call.integer("group", 1),
    )  # fmt: skip
    return _padded(whole, [-pad for pad in pads])


def _max_pool(call: Call) -> "torch.Tensor":
    kernel = call.ints("kernel_shape") or []
    strides, dilations, pads = _window(call, kernel)
    return _MAX_POOLS[len(kernel) - 1](
        _padded(call[0], pads, -inf), kernel, strides, dilation=dilations,
        ceil_mode=bool(call.integer("ceil_mode", 0)),
    )  # fmt: skip


def _average_pool(call: Call) -> "torch.Tensor":
    kernel = call.ints("kernel_shape") or []
    strides, _, pads = _window(call, kernel)
    pool = _MEAN_POOLS[len(kernel) - 1]
    means = pool(_padded(call[0], pads), kernel, strides)
    if call.integer("count_include_pad", 0) or not any(pads):
        return means
    shares = pool(_padded(torch.ones_like(call[0][:1, :1]), pads), kernel, strides)
    return means / shares


def _batch_normalisation(call: Call) -> "torch.Tensor":
    # ONNX weighs the old statistics by its momentum, PyTorch the new ones by its own.
    return functional.batch_norm(
        call[0], call[3], call[4], call[1], call[2], training=call.is_training,
        momentum=1 - call.number("momentum", 0.9), eps=call.number("epsilon", 1e-5),
    )  # fmt: skip


def _layer_normalisation(call: Call) -> "torch.Tensor":
    shape = call[0].shape[call.integer("axis", -1) % call[0].ndim :]
    bias = call.optional(2)
    return functional.layer_norm(
        call[0], shape, call[1].reshape(shape), None if bias is None else bias.reshape(shape),
        eps=call.number("epsilon", 1e-5),
    )  # fmt: skip


def _instance_normalisation(call: Call) -> "torch.Tensor":
    return functional.instance_norm(
        call[0], weight=call[1], bias=call[2], eps=call.number("epsilon", 1e-5)
    )


def _spatial_axes(x: "torch.Tensor") -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


LAYERS: Mapping[str, Operator] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalisation,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda call: call[0].mean(_spatial_axes(call[0]), keepdim=True),
    "GlobalMaxPool": lambda call: call[0].amax(_spatial_axes(call[0]), keepdim=True),
    "InstanceNormalization": _instance_normalisation,
    "LayerNormalization": _layer_normalisation,
    "MatMul": lambda call: torch.matmul(call[0], call[1]),
    "MaxPool": _max_pool,
}
