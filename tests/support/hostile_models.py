"""Small models of every kind that a command reads, for others to damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import tflite
from numpy.typing import NDArray
from tflite import BuiltinOperator as Builtin
from tflite import TensorType as Type

from support.tflite_operator import TYPES, Given, operator_model, weights
from support.tiny_onnx import parse, with_random_weights
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

ONNX_TEXTS: Final[Mapping[str, str]] = {
    "layers": """(float[n,3,6,6] x) => (y)
<float[4,3,3,3] a, float[4] s = {1,2,1,2}, float[4] t, float[4] u, float[4] v = {1,1,1,1},
 float[4,1,3,3] d, float[36,10] f, float[10] g>
{ p = Conv<pads=[1,1,1,1]>(x, a) q = BatchNormalization(p, s, t, u, v) r = Relu(q)
  e = Conv<group=4, pads=[1,1,1,1]>(r, d) m = Add(e, r) k = MaxPool<kernel_shape=[2,2],
  strides=[2,2]>(m) w = Flatten(k) l = Gemm(w, f, g) y = Softmax<axis=-1>(l) }""",
    "to compress": """(float[n,3,6,6] x) => (y) <float[20,3,3,3] a, float[20] b, float[180,4] f>
{ p = Conv<pads=[1,1,1,1]>(x, a, b) r = Relu(p) k = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
  w = Flatten(k) y = MatMul(w, f) }""",
    "to stream": """(float[1,96] x) => (y) <float[96,96] a, float[96,96] b, float[96,96] c>
{ p = MatMul(x, a) q = Relu(p) r = MatMul(q, b) s = Relu(r) y = MatMul(s, c) }""",
    "shapes": """(float[2,3,4] x) => (y, z)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] wide = {4,12},
 int64[3] many = {2,3,4}, int64[6] pads = {0,0,1,0,0,1}, float[3] k = {1,1,2}, float fill = {2}>
{ s = Shape(x) h = Gather<axis=0>(s, zero) t = Concat<axis=0>(h, two)
  j = Mul(t, one) c = ConstantOfShape(many) e = Expand(fill, many) a = Add(x, c) b = Mul(a, e)
  p = Pad(b, pads) i = Slice(p, one, two, two) r = Resize<mode="nearest">(b, , k)
  f, g = Split<axis=2>(b) m = Transpose<perm=[1,0,2]>(f) n = Reshape(m, j) w = Tile(n, one)
  q = ReduceSum<keepdims=0>(r) v = ReduceMax<axes=[1]>(p) y = Squeeze(q) z = Add(v, i) }""",
    "branches of the run": """(float[4] x, bool b) => (y) <float[4] k>
{ y = If(b) <then_branch = t () => (float[4] p) { p = Relu(x) },
            else_branch = e () => (float[4] q) { r = Add(x, k) q = Neg(r) }> }""",
    "branches": """(float[4] x) => (z, w) <int64 trip = {3}, bool go = {1}>
{ c = If(go) <then_branch = t2 () => (float[4] p2) { p2 = Abs(x) },
              else_branch = e2 () => (float[4] q2) { q2 = Neg(x) }>
  z = Loop(trip, go, c) <body = l (int64 i, bool d, float[4] v) => (bool o, float[4] u)
                         { o = Identity(d) u = Add(v, x) }>
  w = Neg(z) }""",
    "quantised": """(float[1,2,4,4] x) => (y)
<float s = {0.1}, uint8 o = {3}, int8[3,2,3,3] a, float[3] b = {0.1,0.2,0.3}, int8[3] c,
 int32[3] d = {1,2,3}>
{ q = QuantizeLinear(x, s, o) v = DequantizeLinear(q, s, o) w = DequantizeLinear<axis=0>(a, b, c)
  p = Conv<pads=[1,1,1,1]>(v, w) r = QuantizeLinear(p, s, o)
  g = QLinearConv<pads=[1,1,1,1]>(q, s, o, a, b, c, s, o, d)
  h = DequantizeLinear(g, s, o) i = DequantizeLinear(r, s, o) y = Add(h, i) }""",
    "quantised in the run": """(float[3,8] x) => (y) <int8[8,5] f>
{ l, m, n = DynamicQuantizeLinear(x) t = MatMulInteger(l, f, n) c = Cast<to=1>(t)
  y = Mul(c, m) }""",
    "recurrent": """(float[3,1,4] x, float[1,1,2] h0) => (y, h, g)
<float[1,8,4] w, float[1,8,2] r, float[1,16] b, float[1,6,4] wg, float[1,6,2] rg>
{ y, h = LSTM<hidden_size=2>(x, w, r, b, , h0) g = GRU<hidden_size=2>(x, wg, rg) }""",
    "attention": """(float[1,4,8] x) => (y)
<float[8] s = {1,1,1,1,1,1,1,1}, float[8] b, float[8,8] a, float[8,8] c, float half = {0.5}>
{ n = LayerNormalization(x, s, b) q = MatMul(n, a) k = MatMul(n, c)
  t = Transpose<perm=[0,2,1]>(k) m = MatMul(q, t) f = Mul(m, half) p = Softmax<axis=-1>(f)
  o = MatMul(p, n) e = Erf(o) g = Mul(o, e) y = Add(x, g) }""",
    "left to ONNX Runtime": "(float[1,2,2] x) => (y) { r = Relu(x) d = Det(r) y = Neg(d) }",
    "sorted": "(float[1,8] x) => (v, i) <int64[1] k = {2}> { v, i = TopK(x, k) }",
}
"""Networks by what is in them, in the onnx package's own text form."""


def onnx_model(name: str) -> onnx.ModelProto:
    """Return a network with random weights, without names that it does not need."""
    return with_random_weights(parse(ONNX_TEXTS[name]))


def with_external_data(folder: Path) -> Mapping[str, bytes]:
    """Return a model and the file beside it that holds its weights."""
    path = folder / "model.onnx"
    onnx.save(
        onnx_model("to compress"),
        path,
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    return {name: (folder / name).read_bytes() for name in ("model.onnx", "w.bin")}


@dataclass(frozen=True, slots=True)
class _Layer:
    """An operator of a chain: it reads the result before it, and constants.

    Attributes:
        code: Its name.
        others: Its further inputs, constants or states.
        result: What it makes.
        options: The name of its options and their fields.
    """

    code: str
    others: Sequence[Given | None]
    result: Given
    options: tuple[str, Mapping[str, object]] | None = None


_STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
_POOL = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}


def _numbers(*shape: int, dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    numbers = 3 * np.random.default_rng(sum(shape)).standard_normal(shape)
    return numbers.astype(dtype)


def _floats() -> list[_Layer]:
    return [
        _Layer("CONV_2D", [weights(_numbers(4, 3, 3, 2)), weights(_numbers(4))],
               Given((1, 6, 6, 4)), ("Conv2DOptions", _STEPS)),
        _Layer("DEPTHWISE_CONV_2D", [weights(_numbers(1, 3, 3, 4)), weights(_numbers(4))],
               Given((1, 6, 6, 4)), ("DepthwiseConv2DOptions", {**_STEPS, "depthMultiplier": 1})),
        _Layer("MAX_POOL_2D", [], Given((1, 3, 3, 4)), ("Pool2DOptions", _POOL)),
        _Layer("PAD", [weights(np.array([[0, 0], [1, 0], [0, 1], [0, 0]], np.int32))],
               Given((1, 4, 4, 4))),
        _Layer("MEAN", [weights(np.array([1, 2], np.int32))], Given((1, 4)),
               ("ReducerOptions", {"keepDims": False})),
        _Layer("FULLY_CONNECTED", [weights(_numbers(10, 4)), None], Given((1, 10)),
               ("FullyConnectedOptions", {})),
        _Layer("SOFTMAX", [], Given((1, 10)), ("SoftmaxOptions", {"beta": 1.0})),
    ]  # fmt: skip


def _hybrid() -> list[_Layer]:
    small = {"scales": (0.05,)}
    return [
        _Layer("CONV_2D", [weights(_numbers(4, 3, 3, 2, dtype=np.int8), scales=(0.1,) * 4),
                           weights(_numbers(4))],
               Given((1, 6, 6, 4)), ("Conv2DOptions", _STEPS)),
        _Layer("RESHAPE", [weights(np.array([1, 144], np.int32))], Given((1, 144))),
        _Layer("FULLY_CONNECTED", [weights(_numbers(4, 144, dtype=np.int8), **small), None],
               Given((1, 4)), ("FullyConnectedOptions", {})),
        _Layer("SVDF", [weights(_numbers(2, 4)), weights(_numbers(2, 3)), weights(_numbers(2)),
                        Given((1, 6), is_variable=True)],
               Given((1, 2)), ("SVDFOptions", {"rank": 1})),
    ]  # fmt: skip


def _integers() -> list[_Layer]:
    quantised: dict[str, Any] = {"dtype": "int8", "scales": (0.1,), "zero_point": 3}
    bias = weights(np.arange(4, dtype=np.int32), scales=(0.01,) * 4)
    return [
        _Layer("CONV_2D", [weights(_numbers(4, 3, 3, 2, dtype=np.int8), scales=(0.1,) * 4), bias],
               Given((1, 6, 6, 4), **quantised), ("Conv2DOptions", _STEPS)),
        _Layer("AVERAGE_POOL_2D", [], Given((1, 3, 3, 4), **quantised), ("Pool2DOptions", _POOL)),
        _Layer("ADD", [weights(_numbers(1, 1, 1, 4, dtype=np.int8), scales=(0.2,))],
               Given((1, 3, 3, 4), **quantised), ("AddOptions", {})),
        _Layer("RESHAPE", [weights(np.array([1, 36], np.int32))], Given((1, 36), **quantised)),
        _Layer("FULLY_CONNECTED", [weights(_numbers(4, 36, dtype=np.int8), scales=(0.1,)), bias],
               Given((1, 4), **quantised), ("FullyConnectedOptions", {})),
        _Layer("DEQUANTIZE", [], Given((1, 4)), ("DequantizeOptions", {})),
    ]  # fmt: skip


def tflite_chains() -> Mapping[str, bytes]:
    """Return TFLite files by what is in them."""
    whole = Given((1, 6, 6, 2), dtype="int8", scales=(0.1,), zero_point=3)
    return {
        "floats": _chain(Given((1, 6, 6, 2)), _floats()),
        "hybrid and variables": _chain(Given((1, 6, 6, 2)), _hybrid()),
        "integers": _chain(whole, _integers()),
        "LSTM": _lstm(),
        "control": _control(),
    }


def _chain(first: Given, layers: Sequence[_Layer]) -> bytes:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(_one(first, layers[0])))
    (graph,) = model.subgraphs
    for before, layer in pairwise(layers):
        (joined,) = graph.outputs
        other = schema.ModelT.InitFromObj(schema.Model.GetRootAs(_one(before.result, layer)))
        (added,) = other.subgraphs
        moved = {-1: -1, added.inputs[0]: joined}
        for index, tensor in enumerate(added.tensors):
            if index in moved:
                continue
            moved[index] = len(graph.tensors)
            graph.tensors.append(tensor)
            tensor.name = f"{layer.code} {index}"
            if tensor.buffer:
                model.buffers.append(other.buffers[tensor.buffer])
                tensor.buffer = len(model.buffers) - 1
        (operator,) = added.operators
        operator.inputs = [moved[index] for index in operator.inputs]
        operator.outputs = graph.outputs = [moved[index] for index in operator.outputs]
        operator.opcodeIndex = len(model.operatorCodes)
        model.operatorCodes += other.operatorCodes
        graph.operators.append(operator)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _one(first: Given, layer: _Layer) -> bytes:
    return operator_model(layer.code, [first, *layer.others], [layer.result], layer.options)


def _lstm() -> bytes:
    gates = [weights(_numbers(2, 3)) for _ in range(4)] + [weights(_numbers(2, 2))] * 4
    states = [Given((1, 2), is_variable=True)] * 2
    inputs = [Given((1, 4, 3)), *gates, None, None, None, *[weights(_numbers(2))] * 4, None, None]
    options = ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4})
    result = [Given((1, 4, 2))]
    return operator_model("UNIDIRECTIONAL_SEQUENCE_LSTM", [*inputs, *states], result, options)


def _control() -> bytes:
    """Return a file with a condition, a loop and an initialisation that it runs once."""

    def tensor(name: str, **options: Any) -> TinyTensor:
        return TinyTensor(name, (4,), Type.FLOAT32, **options)

    def flag(name: str) -> TinyTensor:
        return TinyTensor(name, (1,), Type.BOOL)

    main = TinySubgraph(
        [flag("c"), tensor("x"), tensor("a"), tensor("y")],
        [TinyOperator(Builtin.CALL_ONCE, [], [], [5]),
         TinyOperator(Builtin.IF, [0, 1], [2], [1, 2]),
         TinyOperator(Builtin.WHILE, [2], [3], [3, 4])],
        [0, 1], [3],
    )  # fmt: skip
    bodies = [
        TinySubgraph([tensor("i"), tensor("o")], [TinyOperator(code, [0], [1])], [0], [1])
        for code in (Builtin.NEG, Builtin.ABS)
    ]
    condition = TinySubgraph(
        [tensor("v"), tensor("k", data=_numbers(4).tobytes()), flag("l")],
        [TinyOperator(Builtin.LESS, [0, 1], [2])], [0], [2],
    )  # fmt: skip
    loop = TinySubgraph(
        [tensor("v"), tensor("w")], [TinyOperator(Builtin.EXP, [0], [1])], [0], [1]
    )
    once = TinySubgraph([], [], [], [])
    return tiny_tflite(main, *bodies, condition, loop, once)


assert TYPES["float32"] == Type.FLOAT32 == tflite.TensorType.FLOAT32
