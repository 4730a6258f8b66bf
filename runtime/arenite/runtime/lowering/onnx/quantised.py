"""Operators on 8-bit integers: between DequantizeLinear and QuantizeLinear, and QLinear's.

Operators between the two are first translated as written, in floating point. Where a
QuantizeLinear ends a pattern that has an integer kernel, that kernel replaces the pattern, and
steps whose results are no longer read are left out of the program.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType, Quantisation
from arenite.runtime.lowering.builder import ProgramBuilder
from arenite.runtime.lowering.errors import NotLoweredError, unsupported
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.onnx import elementwise, movement
from arenite.runtime.lowering.onnx import quantised_kernels as kernels
from arenite.runtime.lowering.onnx.dynamic import scaled_product
from arenite.runtime.lowering.onnx.quantisation import (
    MOVES,
    Quantised8Bit,
    Weights,
    dequantised,
    integers,
    signed,
    transposed,
)
from arenite.runtime.lowering.onnx.quantised_kernels import IntegerCall
from arenite.runtime.lowering.onnx.translation import OnnxTranslation
from arenite.runtime.operators.elementwise import BinaryFunction, Convert, Unary, UnaryFunction
from arenite.runtime.operators.reduction import PoolKind

_BINARY = {
    "Add": BinaryFunction.ADD, "Div": BinaryFunction.DIVIDE, "Mul": BinaryFunction.MULTIPLY,
    "Sub": BinaryFunction.SUBTRACT,
}  # fmt: skip
_POOLS = {
    "AveragePool": (PoolKind.AVERAGE, False),
    "GlobalAveragePool": (PoolKind.AVERAGE, True),
    "MaxPool": (PoolKind.MAXIMUM, False),
}
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
_MOVE: Mapping[str, Callable[[OnnxTranslation], None]] = {
    "DepthToSpace": movement.depth_to_space, "Flatten": movement.reshape,
    "Identity": elementwise.view, "Reshape": movement.reshape, "Slice": movement.slice_,
    "SpaceToDepth": movement.space_to_depth, "Split": movement.split,
    "Squeeze": movement.reshape, "Tile": movement.tile, "Transpose": movement.transpose,
    "Unsqueeze": movement.reshape,
}  # fmt: skip


class Quantised:
    """Translates operators on 8-bit integers.

    Args:
        builder: The program so far.
        model: The model to translate, with its 8-bit tensors and their twins.
    """

    def __init__(self, builder: ProgramBuilder, model: Quantised8Bit) -> None:
        self._builder = builder
        self._model = model.program
        self._twin = model.twin
        self._quantisations = model.known
        self._num_readers = Counter(n for each in self._model.steps for n in each.reads)
        self._quantisers = {
            each.inputs[0]: each.outputs[0]
            for each in self._model.steps
            if each.operator.label.endswith("QuantizeLinear")
        }

    def translate(self, t: OnnxTranslation) -> bool:
        """Translate an operator on integers; return whether it is one.

        Raises:
            NotLoweredError: It is, and has a form that no kernel of ours runs.
        """
        kind = t.kind.rpartition(".")[2]
        if kind == "Mul" and scaled_product(t):
            return True
        if t.target not in self._quantisations and kind != "DequantizeLinear":
            return False
        if kind == "DequantizeLinear":
            return self._dequantise(t)
        if kind == "QuantizeLinear":
            self._quantise(t)
        elif kind in ("QLinearConv", "QLinearMatMul", "QGemm"):
            self._bind(t.target, self._product(t, kind))
        elif kind.startswith("QLinear"):
            self._bind(t.target, self._function(t, kind.removeprefix("QLinear")))
        elif kind == "MaxPool":
            self._bind(t.target, self._pool(self._call(t, t.target), kind, t.source()))
        elif kind in MOVES:
            self._move(t, t.source(), t.step.outputs)
        else:
            return False
        return True

    # Integers and numbers.

    def _value(self, name: str) -> StoredValue:
        """Return a tensor of integers as signed ones."""
        quantisation = self._quantisations.get(name)
        if quantisation is None:
            raise NotLoweredError(f"tensor {name!r} needs one constant scale and zero point")
        alias = self._twin(name)
        if alias == name or self._builder.has(alias):
            return self._builder.value(alias)
        array = self._builder.array(name)
        if array is not None:
            made = self._builder.constant(signed(array), name, self._quantisations[alias])
        else:
            made = self._converted(self._builder.value(name), alias, DType.INT8)
        self._builder.bind(alias, made)
        return made

    def _bind(self, name: str, value: StoredValue) -> None:
        """Make a tensor of integers stand for these signed ones."""
        alias = self._twin(name)
        self._builder.bind(alias, value)
        if alias != name:
            self._builder.bind(name, self._converted(value, name, DType.UINT8))

    def _converted(self, value: StoredValue, name: str, dtype: DType) -> StoredValue:
        return self._builder.emit_one(
            Convert(), [value], name, value.shape, value.order, dtype=dtype
        )

    def _dequantise(self, t: OnnxTranslation) -> bool:
        if t.source() not in self._quantisations or t.dtype is not DType.FLOAT32:
            return False
        t.finish(self._converted(self._value(t.source()), t.target, t.dtype))
        return True

    def _quantise(self, t: OnnxTranslation) -> None:
        if self._builder.has(self._twin(t.target)):
            return  # made together with another part of a Split
        made = self._collapsed(t)
        if made is None:
            alias = self._twin(t.target)
            made = self._converted(t.value(), alias, DType.INT8)
        self._bind(t.target, made)

    def _call(self, t: OnnxTranslation, target: str) -> IntegerCall:
        alias = self._twin(target)
        return IntegerCall(t, alias, self._quantisations[alias])

    # Between DequantizeLinear and QuantizeLinear.

    def _collapsed(self, t: OnnxTranslation) -> StoredValue | None:
        """Return the result of an integer kernel for the pattern that ends here, or None."""
        operator = t.producers.get(t.source())
        if operator is None:
            return None
        last = replace(t, step=operator)
        if operator.operator.label in ("Relu", "Clip"):
            try:
                low, high = _bounds(last)
            except NotLoweredError:
                return None
            before = t.producers.get(operator.inputs[0])
            if before is not None and before.operator.label in (*_PRODUCTS, *_BINARY):
                call = self._call(replace(t, step=before), t.target)
                made = self._computed(replace(call, low=low, high=high))
                if made is not None:
                    return made
        return self._computed(self._call(last, t.target))

    def _computed(self, call: IntegerCall) -> StoredValue | None:
        try:
            return self._compute(call)
        except NotLoweredError:
            return None

    def _compute(self, call: IntegerCall) -> StoredValue:
        t = call.t
        kind = t.kind
        if kind in _PRODUCTS:
            return self._float_product(call)
        if kind == "Concat":
            return kernels.concat(call, [self._operand(t, name) for name in t.step.inputs])
        source = self._operand(t, t.source())
        if kind in _BINARY:
            return kernels.binary(call, _BINARY[kind], source, self._operand(t, t.source(1)))
        if kind in _POOLS:
            pool_kind, is_global = _POOLS[kind]
            return kernels.pool(call, source, pool_kind, is_global=is_global)
        if kind == "Softmax":
            return kernels.softmax(call, source)
        if kind in ("Relu", "Clip"):
            low, high = _bounds(t)
            operator = Unary(function=UnaryFunction.CLAMP, alpha=low, beta=high)
            return kernels.unary(call, operator, source)
        if kind in elementwise.UNARY:
            operator = elementwise.unary_operator(kind, t.attributes)
            return kernels.unary(call, operator, source)
        if kind == "Pad":
            return self._padded(call, source)
        if kind in MOVES:
            return self._moved(call, source)
        raise NotLoweredError("no kernel for 8-bit integers")

    def _operand(self, t: OnnxTranslation, name: str) -> StoredValue:
        """Return the integers that DequantizeLinear made an operand from."""
        producer = t.producers.get(name)
        if producer is not None and producer.operator.label.endswith("DequantizeLinear"):
            return self._value(producer.inputs[0])
        weights = dequantised(self._model, name) if producer is None else None
        if weights is None or len(weights.scales) != 1:
            raise NotLoweredError(
                f"input {name!r} is not dequantised from 8-bit integers with one scale"
            )
        quantisation = Quantisation(weights.scales, weights.zero_point)
        return self._builder.constant(weights.array, name, quantisation)

    def _float_product(self, call: IntegerCall) -> StoredValue:
        t = call.t
        source = self._operand(t, t.source())
        weights = dequantised(self._model, t.source(1))
        if weights is None:
            raise NotLoweredError("the weights are not dequantised from 8-bit integers")
        bias = t.optional_array(2)
        if t.kind == "Conv":
            return kernels.convolution(call, source, weights, bias)
        return _matrix_product(call, source, weights, bias)

    def _moved(self, call: IntegerCall, source: StoredValue) -> StoredValue:
        """Return a part or another order of a value, with all other parts of a Split."""
        t = call.t
        outputs = [self._quantisers.get(name, name) for name in t.step.outputs]
        for name, output in zip(t.step.outputs, outputs, strict=True):
            is_read = self._num_readers[name] > 0
            if is_read and self._quantisations.get(output) is None:
                raise NotLoweredError(f"output {name!r} is not quantised")
            if is_read and self._quantisations[self._twin(output)] != call.quantisation:
                raise NotLoweredError("the outputs have different scales")
        value = kernels.rescaled(t, source, call.quantisation, call.target)
        self._run_move(t, value, outputs)
        return self._builder.value(call.target)

    def _padded(self, call: IntegerCall, source: StoredValue) -> StoredValue:
        t = call.t
        if t.opset < 11 or t.attribute("mode", "constant") != "constant":
            raise unsupported("mode", t.attribute("mode", "constant"), "constant")
        given = t.optional_array(2)
        number = 0.0 if given is None else float(given.reshape(()))
        steps = round(number / call.quantisation.scales[0]) + call.quantisation.zero_point
        fill = np.array(min(max(steps, -128), 127), np.int8)
        names = (
            self._builder.new_name(f"{call.target}/source"),
            t.source(1),
            self._builder.new_name(f"{call.target}/fill"),
            *t.step.inputs[3:],
        )
        value = kernels.rescaled(t, source, call.quantisation, call.target)
        self._builder.bind(names[0], value)
        self._builder.bind(names[2], self._builder.constant(fill, names[2]))
        movement.pad(replace(t, step=replace(t.step, inputs=names, outputs=(call.target,))))
        return self._builder.value(call.target)

    # Operators whose operands are integers themselves.

    def _move(self, t: OnnxTranslation, source: str, outputs: tuple[str, ...]) -> None:
        self._run_move(t, self._value(source), list(outputs))
        for name in outputs:
            self._bind(name, self._builder.value(self._twin(name)))

    def _run_move(self, t: OnnxTranslation, value: StoredValue, outputs: list[str]) -> None:
        source = self._builder.new_name(f"{outputs[0]}/source")
        self._builder.bind(source, value)
        names = tuple(
            self._twin(name) if name in self._quantisations else name for name in outputs
        )
        operator = replace(t.step, inputs=(source, *t.step.inputs[1:]), outputs=names)
        _MOVE[t.kind](replace(t, step=operator))

    def _pool(self, call: IntegerCall, kind: str, source: str) -> StoredValue:
        pool_kind, is_global = _POOLS[kind]
        return kernels.pool(call, self._value(source), pool_kind, is_global=is_global)

    def _product(self, t: OnnxTranslation, kind: str) -> StoredValue:
        call = self._call(t, t.target)
        axis = 0 if kind == "QLinearConv" else 1
        if kind == "QGemm" and t.attribute("transB", 0):
            axis = 0
        weights = integers(self._model, t.source(3), t.source(4), t.source(5), axis)
        if weights is None:
            raise NotLoweredError("the weights are not constant 8-bit integers")
        source = self._value(t.source())
        if kind == "QLinearConv":
            return kernels.convolution(call, source, weights, t.optional_array(8))
        bias = t.optional_array(6) if kind == "QGemm" else None
        return _matrix_product(call, source, weights, bias)

    def _function(self, t: OnnxTranslation, kind: str) -> StoredValue:
        call = self._call(t, t.target)
        if kind == "Concat":
            values = [self._value(name) for name in t.step.inputs[2::3]]
            return kernels.concat(call, values)
        if t.attribute("channels_last", 0):
            raise unsupported("channels_last", 1, 0)
        if kind in _POOLS:
            return self._pool(call, kind, t.source())
        source = self._value(t.source())
        if kind in _BINARY:
            return kernels.binary(call, _BINARY[kind], source, self._value(t.source(3)))
        if kind == "Softmax":
            return kernels.softmax(call, source)
        if kind in ("LeakyRelu", "Sigmoid"):
            operator = elementwise.unary_operator(kind, t.attributes)
            return kernels.unary(call, operator, source)
        raise NotLoweredError("no kernel for 8-bit integers")


def _matrix_product(
    call: IntegerCall, source: StoredValue, weights: Weights, bias: Array | None
) -> StoredValue:
    t = call.t
    if t.kind == "Gemm" and t.attribute("beta", 1.0) != 1.0:
        raise unsupported("beta", t.attribute("beta", 1.0), 1)
    if t.attribute("transA", 0) or t.attribute("alpha", 1.0) != 1.0:
        raise NotLoweredError(
            f"transA={t.attribute('transA', 0)}, alpha={t.attribute('alpha', 1.0)} "
            "is unsupported, supported: transA=0, alpha=1"
        )
    if t.attribute("transB", 0):
        weights = transposed(weights)
    return kernels.linear(call, source, weights, bias)


def _bounds(t: OnnxTranslation) -> tuple[float, float]:
    return (0.0, math.inf) if t.kind == "Relu" else elementwise.clip_bounds(t)
