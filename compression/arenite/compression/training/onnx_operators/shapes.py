"""Operators that move elements, and reductions."""

from collections.abc import Callable, Mapping
from itertools import chain

import numpy as np
import onnx
import torch
from torch.nn import functional

from arenite.compression.training.onnx_operators.call import Call, Operator

_PAD_MODES = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


def _constant(call: Call) -> "torch.Tensor":
    if "value" in call.attributes:
        array = onnx.numpy_helper.to_array(call.attributes["value"])
    elif "value_float" in call.attributes or "value_floats" in call.attributes:
        found = call.attributes.get("value_float", call.attributes.get("value_floats"))
        array = np.array(found, np.float32)
    else:
        found = call.attributes.get("value_int", call.attributes.get("value_ints"))
        array = np.array(found, np.int64)
    return torch.from_numpy(np.array(array))


def _constant_of_shape(call: Call) -> "torch.Tensor":
    value = call.attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else onnx.numpy_helper.to_array(value)
    return torch.from_numpy(np.array(fill)).expand(call.ints("", 0) or []).clone()


def _reshape(call: Call) -> "torch.Tensor":
    shape = call.ints("shape", 1) or []
    if not call.integer("allowzero", 0):
        shape = [call[0].shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    return call[0].reshape(shape)


def _flatten(call: Call) -> "torch.Tensor":
    axis = call.integer("axis", 1)
    axis = axis + call[0].ndim if axis < 0 else axis
    rows = int(np.prod(call[0].shape[:axis], dtype=np.int64))
    return call[0].reshape(rows, -1)


def _transpose(call: Call) -> "torch.Tensor":
    return call[0].permute(call.ints("perm") or list(reversed(range(call[0].ndim))))


def _squeeze(call: Call) -> "torch.Tensor":
    axes = call.ints("axes", 1)
    return call[0].squeeze() if axes is None else call[0].squeeze(tuple(axes))


def _unsqueeze(call: Call) -> "torch.Tensor":
    axes = call.ints("axes", 1) or []
    rank = call[0].ndim + len(axes)
    result = call[0]
    for axis in sorted(axis % rank for axis in axes):
        result = result.unsqueeze(axis)
    return result


def _concat(call: Call) -> "torch.Tensor":
    parts = [call[index] for index in range(len(call.inputs))]
    return torch.cat(parts, call.integer("axis", 0))


def _split(call: Call) -> "tuple[torch.Tensor, ...]":
    axis = call.integer("axis", 0)
    sizes = call.ints("split", 1)
    lengths = -(-call[0].shape[axis] // call.num_outputs) if sizes is None else sizes
    return tuple(call[0].split(lengths, axis))


def _slice(call: Call) -> "torch.Tensor":
    starts, ends = call.ints("starts", 1) or [], call.ints("ends", 2) or []
    axes = call.ints("axes", 3) or list(range(len(starts)))
    steps = call.ints("steps", 4) or [1] * len(starts)
    result = call[0]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        picked = range(*slice(start, end, step).indices(result.shape[axis]))
        index = torch.tensor(picked, dtype=torch.int64, device=result.device)
        result = result.index_select(axis, index)
    return result


def _gather(call: Call) -> "torch.Tensor":
    axis = call.integer("axis", 0) % call[0].ndim
    index = call[1].to(torch.int64) % call[0].shape[axis]
    rows = call[0].index_select(axis, index.reshape(-1))
    return rows.reshape((*call[0].shape[:axis], *index.shape, *call[0].shape[axis + 1 :]))


def _expand(call: Call) -> "torch.Tensor":
    shape = torch.broadcast_shapes(call[0].shape, tuple(call.ints("", 1) or []))
    return call[0].expand(shape)


def _pad(call: Call) -> "torch.Tensor":
    pads = call.ints("pads", 1) or []
    axes = call.ints("", 3) or list(range(len(pads) // 2))
    mode = _PAD_MODES[call.attributes.get("mode", b"constant").decode()]
    begins, ends = [0] * call[0].ndim, [0] * call[0].ndim
    for axis, begin, end in zip(axes, pads, pads[len(axes) :], strict=False):
        begins[axis], ends[axis] = begin, end
    pairs = list(chain.from_iterable(zip(reversed(begins), reversed(ends), strict=True)))
    if mode == "constant":
        value = call.optional(2)
        fill = call.number("value", 0.0) if value is None else float(value)
        return functional.pad(call[0], pairs, value=fill)
    while len(pairs) > 2 and pairs[-2:] == [0, 0]:
        pairs = pairs[:-2]  # it pads the innermost axes only
    return functional.pad(call[0], pairs, mode=mode)


def _reduction(function: "Callable[..., torch.Tensor]") -> Operator:
    def apply(call: Call) -> "torch.Tensor":
        axes = call.ints("axes", 1)
        if not axes and call.integer("noop_with_empty_axes", 0):
            return call[0]
        over = tuple(axes) if axes else tuple(range(call[0].ndim))
        return function(call[0], over, keepdim=bool(call.integer("keepdims", 1)))

    return apply


def _norm(x: "torch.Tensor", over: tuple[int, ...], keepdim: bool) -> "torch.Tensor":
    return torch.linalg.vector_norm(x, dim=over, keepdim=keepdim)


SHAPES: Mapping[str, Operator] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "ReduceL2": _reduction(_norm),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMean": _reduction(torch.mean),
    "ReduceMin": _reduction(torch.amin),
    "ReduceSum": _reduction(torch.sum),
    "Reshape": _reshape,
    "Shape": lambda call: torch.tensor(
        call[0].shape[call.integer("start", 0) : call.attributes.get("end")]
    ),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
