"""The cases of TFLite's operators: each on several element types, beside LiteRT.

An operator of numbers is made one of other types by giving its operands those types. What of it
LiteRT's reference kernels refuse is no form of the operator, and no case.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from bench.sweep.outcome import Array, Case
from bench.sweep.tflite_file import Operator, Tensor, file_of
from bench.sweep.tflite_operators import feeds, operators

FORMS = ("float32", "int8", "uint8", "int16", "int32", "int64")
"""Element types of the first operand that each operator is tried on."""

WEIGHTS_ALONE = "float32 with int8 weights"
"""Layers whose weights alone are quantised."""

_LEFT_OUT = frozenset({("NEG", "int8"), ("NEG", "int16"), ("QUANTIZE", "int32")})
"""What LiteRT computes without regard to the zero point, or without a scale."""

_KERNELS = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
_SCALES = {"int8": (0.05, 3), "uint8": (0.05, 131), "int16": (0.001, 0)}
_RESULTS = {
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
    "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
}
"""Scales and zero points that LiteRT demands of results."""

_STDERR = 2
_CONTEXT = get_context("fork")  # from here nothing has to be imported anew

_WITH_BIAS = frozenset(
    {"CONV_2D", "CONV_3D", "CONV_3D_TRANSPOSE", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED",
     "TRANSPOSE_CONV"}
)  # fmt: skip
_HYBRID = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_WEIGHT_SCALE = 0.01
_SAME = {"STABLEHLO_WHILE": "WHILE"}
"""Operators that LiteRT runs under another name alone."""


def tflite_cases(names: Sequence[str] | None = None) -> Iterator[Case]:
    """Yield the cases of these operators, by default of all; of each one at least.

    The one case of an operator of which LiteRT runs no form has no outputs to compare with.
    """
    for name, operator in operators().items():
        if names is not None and name not in names:
            continue
        found = list(_cases(name, operator))
        if not found:
            found = [Case(name, name, ".tflite", file_of(operator), None, ())]
        yield from found


def _cases(name: str, operator: Operator) -> Iterator[Case]:
    for label, form in _forms(operator):
        if (name, label) in _LEFT_OUT:
            continue
        model, arrays = file_of(form), feeds(form)
        known = file_of(dict(_forms(operators()[_SAME[name]]))[label]) if name in _SAME else model
        made = [each for kind in _KERNELS if (each := _litert(known, arrays, kind)) is not None]
        if made:
            yield Case(
                name, f"{name}, {label}", ".tflite", model, arrays,
                tuple(partial(_returned, each) for each in made), (label,),
                *_tolerances(name, label, made[0]),
            )  # fmt: skip


def _returned(outputs: list[Array]) -> list[Array]:
    return outputs


def _tolerances(name: str, label: str, expected: Sequence[Array]) -> tuple[float, float]:
    """Return the relative and the absolute difference that count as rounding.

    One quantum of small integers; where LiteRT quantises what a layer of 8-bit weights reads, as
    we do not, a part of the largest output; and what its table of exponentials leaves open.
    """
    if (name, label) == ("SOFTMAX", "int16"):
        return 0.0, 2.0**5
    if label == WEIGHTS_ALONE:
        return 0.0, 0.05 * max(float(np.abs(each).max(initial=0)) for each in expected)
    is_integer = all(each.dtype.kind in "iu" and each.dtype.itemsize < 4 for each in expected)
    return 1e-4, 1.0 if is_integer else 1e-5


def _forms(operator: Operator) -> Iterator[tuple[str, Operator]]:
    """Yield the operator on each element type, under the type's name."""
    first = next((each for each in operator.inputs if each is not None and each.is_fed), None)
    tensors = (*operator.inputs, *operator.outputs)
    if first is None or not any(each and each.dtype == "float32" for each in tensors):
        yield (first or operator.outputs[0]).dtype, operator
        return
    if operator.code == "DEQUANTIZE":
        for dtype in _SCALES:
            yield dtype, operator.with_tensors([_retyped(first, dtype)], operator.outputs)
        return
    for dtype in FORMS:
        yield dtype, operator if dtype == "float32" else _retyped_operator(operator, dtype)
    if operator.code in _HYBRID:
        source, weights, bias = operator.inputs
        assert weights is not None
        hybrid = _quantised(weights, "int8", 0)
        if operator.code == "DEPTHWISE_CONV_2D":  # LiteRT reads a scale for each channel
            count = weights.shape[-1]
            hybrid = replace(hybrid, scales=hybrid.scales * count, axis=len(weights.shape) - 1)
        inputs = (source, hybrid, bias)
        yield WEIGHTS_ALONE, operator.with_tensors(inputs, operator.outputs)


def _retyped_operator(operator: Operator, dtype: str) -> Operator:
    inputs = [None if each is None else _retyped(each, dtype) for each in operator.inputs]
    outputs = list(operator.outputs)
    if operator.code != "QUANTIZE":
        outputs = [_retyped(each, dtype) for each in outputs]
    if operator.code in _WITH_BIAS and dtype in _SCALES and len(inputs) > 2:
        position = 2 if operator.code != "TRANSPOSE_CONV" else len(inputs)
        if position < len(inputs):
            inputs[position] = _bias(operator.inputs[position], dtype)
    scale, zero_point = _RESULTS.get(operator.code, {}).get(dtype, (None, 0))
    if scale is not None:
        outputs = [replace(each, scales=(scale,), zero_point=zero_point) for each in outputs]
    return operator.with_tensors(inputs, outputs)


def _retyped(tensor: Tensor, dtype: str) -> Tensor:
    """Return a tensor of numbers with another element type; others stay."""
    if tensor.dtype != "float32":
        return tensor
    if dtype not in _SCALES:
        array = None if tensor.array is None else np.ceil(np.abs(tensor.array)).astype(dtype)
        return replace(tensor, dtype=dtype, array=array)
    scale, zero_point = _SCALES[dtype]
    if tensor.array is None:
        return replace(tensor, dtype=dtype, scales=(scale,), zero_point=zero_point)
    if tensor.array.ndim < 2:
        return _with_elements(tensor, dtype, scale, zero_point)
    return _quantised(tensor, "uint8" if dtype == "uint8" else "int8", zero_point)


def _quantised(weights: Tensor, dtype: str, zero_point: int) -> Tensor:
    return _with_elements(weights, dtype, _WEIGHT_SCALE, zero_point if dtype == "uint8" else 0)


def _with_elements(tensor: Tensor, dtype: str, scale: float, zero_point: int) -> Tensor:
    assert tensor.array is not None
    limits = np.iinfo(dtype)
    array = np.round(tensor.array / scale) + zero_point
    array = np.clip(array, max(limits.min, -limits.max), limits.max).astype(dtype)
    return replace(tensor, dtype=dtype, array=array, scales=(scale,), zero_point=zero_point)


def _bias(bias: Tensor | None, dtype: str) -> Tensor | None:
    if bias is None or bias.array is None:
        return bias
    scale = _SCALES[dtype][0] * _WEIGHT_SCALE
    wide = "int64" if dtype == "int16" else "int32"
    array = np.round(bias.array / scale).astype(wide)
    return replace(bias, dtype=wide, array=array, scales=(scale,))


def _litert(model: bytes, arrays: Sequence[Array], kernels: OpResolverType) -> list[Array] | None:
    """Return what LiteRT makes of the inputs, None if it refuses the model or does not survive it.

    In a process of its own: some kernels write beyond their tensors on types they do not check.
    """
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_interpret, args=(sender, model, arrays, kernels))
    process.start()
    sender.close()
    made: list[Array] | None
    try:
        made = receiver.recv()
    except EOFError:
        made = None
    process.join()
    return None if process.exitcode else made


def _interpret(
    sender: Connection, model: bytes, arrays: Sequence[Array], kernels: OpResolverType
) -> None:
    with Path(os.devnull).open("wb") as silence:  # what the C library says of a crash
        os.dup2(silence.fileno(), _STDERR)
    try:
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        for detail, array in zip(details, arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
    except (RuntimeError, ValueError):
        sender.send(None)
        return
    outputs = interpreter.get_output_details()
    sender.send([np.copy(interpreter.get_tensor(each["index"])) for each in outputs])
