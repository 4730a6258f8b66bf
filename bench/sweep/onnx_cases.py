"""The cases of ONNX's own operators: those of the onnx package's backend tests.

The package's models take everything as inputs of the graph, weights and axes too. Deployed models
have constants there, so each case comes in that form as well.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from bench.sweep.outcome import Array, Case, Reference

RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Whose outputs nobody can foretell, Dropout's in training."""


def onnx_operators() -> dict[str, int]:
    """Return every operator of ONNX's own domain, and the version that changed it last."""
    schemas = [each for each in onnx.defs.get_all_schemas() if not each.domain]
    return {each.name: each.since_version for each in sorted(schemas, key=lambda s: s.name)}


def onnx_cases() -> Iterator[Case]:
    """Yield the cases of ONNX's operators, both forms of each."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():  # the package computes infinities on purpose
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for test in found:
        nodes = test.model.graph.node
        if len(nodes) == 1 and not nodes[0].domain and not test.name.endswith("_expanded"):
            yield from _forms(test)


def _forms(test: TestCase) -> Iterator[Case]:
    inputs, outputs = (list(map(_array, each)) for each in test.data_sets[0])
    yield _case(test, test.model, test.name, inputs, outputs)
    frozen = _with_constants(test.model, inputs)
    if frozen is not None:
        yield _case(test, frozen, f"{test.name}, constants", inputs[:1], outputs)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _case(test: TestCase, model: onnx.ModelProto, name: str, inputs: Any, outputs: Any) -> Case:
    kind = model.graph.node[0].op_type
    feeds: dict[str, Array] | None = None
    if all(isinstance(each, np.ndarray | np.generic) for each in inputs):
        names = [value.name for value in model.graph.input]
        feeds = {n: np.asarray(each) for n, each in zip(names, inputs, strict=True)}
    serialised = model.SerializeToString()
    references: tuple[Reference, ...] = (
        lambda: [np.asarray(each) for each in outputs],
        lambda: stock_outputs(serialised, feeds),
    )
    return Case(
        kind, name, ".onnx", serialised, feeds, () if kind in RANDOM else references,
        types_of(model), test.rtol, max(test.atol, 1e-5),
    )  # fmt: skip


def types_of(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the element types of a model's inputs, sorted."""
    return tuple(sorted({_label(value) for value in model.graph.input}))


def stock_outputs(model: bytes, feeds: dict[str, Array] | None) -> list[Array] | None:
    """Return what ONNX Runtime makes of a model's inputs, None if it does not run it.

    It is the second to ask: in a few cases it departs from the definition, and we with it.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options)
        made: list[Array] = session.run(None, feeds)
    except Exception:  # its errors have no common base, and none matters here
        return None
    return made


def _with_constants(model: onnx.ModelProto, inputs: Any) -> onnx.ModelProto | None:
    """Return a model whose inputs but the first are constants, None if there are no others."""
    arrays = [each for each in inputs[1:] if isinstance(each, np.ndarray | np.generic)]
    if not arrays or len(arrays) < len(inputs) - 1:
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value, array in zip(list(made.graph.input)[1:], arrays, strict=True):
        tensor = numpy_helper.from_array(np.asarray(array), value.name)
        if tensor.data_type != value.type.tensor_type.elem_type:
            return None  # numpy has no such type
        made.graph.initializer.append(tensor)
        made.graph.input.remove(value)
    return made


def _label(value: onnx.ValueInfoProto) -> str:
    if not value.type.HasField("tensor_type"):
        return str(value.type.WhichOneof("value")).removesuffix("_type")
    return str(onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)).lower()


_HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> case '
_SCALES = "float s = {0.05}, uint8 z = {120}, float t = {0.1}, uint8 u = {130}"

TEXTS: dict[str, str] = {
    "ConcatFromSequence": "(float[2,3] x) => (float[4,3] y) "
    "{q = SequenceConstruct(x, x) y = ConcatFromSequence<axis=0>(q)}",
    "CumSum": "(float[2,6] x) => (y) <int64 a = {1}> {y = CumSum(x, a)}",
    "Einsum": "(float[2,3,4] x, float[2,4,5] z) => (y) "
    '{y = Einsum<equation="bij,bjk->bik">(x, z)}',
    "GlobalLpPool": "(float[1,3,4,5] x) => (float[1,3,1,1] y) {y = GlobalLpPool(x)}",
    "LayerNormalization": "(float[2,4] x) => (y) <float[4] g = {1,2,3,4}> "
    "{y = LayerNormalization(x, g)}",
    "MaxRoiPool": "(float[1,3,8,8] x) => (float[1,3,2,2] y) <float[1,5] r = {0,0,0,5,5}> "
    "{y = MaxRoiPool<pooled_shape=[2,2]>(x, r)}",
    "Multinomial": "(float[2,5] x) => (int32[2,3] y) {y = Multinomial<sample_size=3>(x)}",
    "Not": "(bool[2,6] x) => (bool[2,6] y) {y = Not(x)}",
    "Optional": "(float[2,3] x) => (float[2,3] y) {o = Optional(x) y = OptionalGetElement(o)}",
    "RandomNormal": "(float[2,3] x) => (float[2,3] y) "
    "{r = RandomNormal<shape=[2,3]>() y = Add(x, r)}",
    "RandomNormalLike": "(float[2,3] x) => (float[2,3] y) {y = RandomNormalLike(x)}",
    "RandomUniform": "(float[2,3] x) => (float[2,3] y) "
    "{r = RandomUniform<shape=[2,3]>() y = Add(x, r)}",
    "RandomUniformLike": "(float[2,3] x) => (float[2,3] y) {y = RandomUniformLike(x)}",
    "ReduceLogSumExp": "(float[2,6] x) => (y) {y = ReduceLogSumExp<axes=[1]>(x)}",
    "ScatterElements": "(float[1,1,4,4] x, float[4] g) => (float[16] y) <float z = {0}, "
    "int64[1] n = {-1}> {m, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) c = Clip(x, z, z) "
    "d = Reshape(c, n) j = Reshape(i, n) "
    'y = ScatterElements<axis=0, reduction="add">(d, j, g)}',
    "SequenceAt": "(float[2,3] x) => (float[2,3] y) <int64 i = {0}> "
    "{q = SequenceConstruct(x, x) y = SequenceAt(q, i)}",
    "SequenceConstruct": "(float[2,3] x) => (int64 y) "
    "{q = SequenceConstruct(x, x) y = SequenceLength(q)}",
    "SequenceEmpty": "(float[2,3] x) => (int64 y) "
    "{q = SequenceEmpty() r = SequenceInsert(q, x) y = SequenceLength(r)}",
    "SequenceErase": "(float[2,3] x) => (int64 y) "
    "{q = SequenceConstruct(x, x) r = SequenceErase(q) y = SequenceLength(r)}",
    "SequenceLength": "(float[2,3] x) => (int64 y) "
    "{q = SequenceConstruct(x) y = SequenceLength(q)}",
    "com.microsoft.Attention": "(float[1,2,4] x) => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}"
    ", float[3] b = {0,1,0}> {y = com.microsoft.Attention<num_heads=1>(x, w, b)}",
    "com.microsoft.BiasGelu": "(float[2,6] x) => (y) <float[6] b = {0,1,2,3,4,5}> "
    "{y = com.microsoft.BiasGelu(x, b)}",
    "com.microsoft.CDist": "(double[3,4] x, double[2,4] z) => (y) {y = com.microsoft.CDist(x, z)}",
    "com.microsoft.DequantizeLinear": f"(uint8[2,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.DequantizeLinear(x, s, z)}",
    "com.microsoft.EmbedLayerNormalization": "(float[1,2,4] x) => (y) <int32[1,2] i = {1,0}, "
    "float[2,4] w = {1,2,3,4,5,6,7,8}, float[4] g = {1,2,3,4}, float[4] b = {0,1,0,1}> "
    '{h, n = com.microsoft.EmbedLayerNormalization(i, "", w, w, "", g, b) y = Add(h, x)}',
    "com.microsoft.ExpandDims": "(float[2,6] x) => (y) <int32 a = {1}> "
    "{y = com.microsoft.ExpandDims(x, a)}",
    "com.microsoft.FastGelu": "(float[2,6] x) => (y) {y = com.microsoft.FastGelu(x)}",
    "com.microsoft.FusedConv": "(float[1,2,5,6] x) => (y) <float[1,2,1,1] w = {1.5,-0.5}> "
    '{y = com.microsoft.FusedConv<kernel_shape=[1,1], activation="Relu">(x, w)}',
    "com.microsoft.FusedGemm": "(float[2,3] x) => (y) <float[3,2] w = {1,2,3,4,5,6}> "
    '{y = com.microsoft.FusedGemm<activation="Relu">(x, w)}',
    "com.microsoft.FusedMatMul": "(float[2,3] x, float[2,3] z) => (y) "
    "{y = com.microsoft.FusedMatMul<transB=1>(x, z)}",
    "com.microsoft.Gelu": "(float[2,6] x) => (y) {y = com.microsoft.Gelu(x)}",
    "com.microsoft.Inverse": "(float[3,3] x) => (y) {y = com.microsoft.Inverse(x)}",
    "com.microsoft.Pad": "(float[2,6] x) => (y) <int64[4] p = {0,1,0,2}> "
    "{y = com.microsoft.Pad(x, p)}",
    "com.microsoft.QGemm": f"(uint8[2,3] x) => (y) <{_SCALES}, "
    "int8[3,2] w = {1,2,-3,4,5,6}, int8 o = {0}, int32[2] b = {7,-9}> "
    "{y = com.microsoft.QGemm(x, s, z, w, s, o, b, t, u)}",
    "com.microsoft.QLinearAdd": f"(uint8[2,6] x, uint8[2,6] v) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearAdd(x, s, z, v, t, z, t, u)}",
    "com.microsoft.QLinearAveragePool": f"(uint8[1,2,4,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearAveragePool<kernel_shape=[2,2]>(x, s, z, t, u)}",
    "com.microsoft.QLinearConcat": f"(uint8[2,6] x, uint8[2,6] v) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearConcat<axis=1>(t, u, x, s, z, v, t, z)}",
    "com.microsoft.QLinearGlobalAveragePool": f"(uint8[1,2,4,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearGlobalAveragePool(x, s, z, t, u)}",
    "com.microsoft.QLinearLeakyRelu": f"(uint8[2,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearLeakyRelu<alpha=0.2>(x, s, z, t, u)}",
    "com.microsoft.QLinearMul": f"(uint8[2,6] x, uint8[2,6] v) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearMul(x, s, z, v, t, z, t, u)}",
    "com.microsoft.QLinearSigmoid": f"(uint8[2,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.QLinearSigmoid(x, s, z, t, u)}",
    "com.microsoft.QLinearSoftmax": "(uint8[2,6] x) => (y) <float s = {0.05}, uint8 z = {120}, "
    "float t = {0.00390625}, uint8 u = {0}> "
    "{y = com.microsoft.QLinearSoftmax<axis=1, opset=13>(x, s, z, t, u)}",
    "com.microsoft.QuantizeLinear": f"(float[2,6] x) => (y) <{_SCALES}> "
    "{y = com.microsoft.QuantizeLinear(x, s, z)}",
    "com.microsoft.QuickGelu": "(float[2,6] x) => (y) {y = com.microsoft.QuickGelu(x)}",
    "com.microsoft.Range": "(float[4] x) => (y) <float a = {0}, float b = {4}, float c = {1}> "
    "{r = com.microsoft.Range(a, b, c) y = Add(x, r)}",
    "com.microsoft.SkipLayerNormalization": "(float[1,2,4] x, float[1,2,4] z) => (y) "
    "<float[4] g = {1,2,3,4}, float[4] b = {0,1,0,1}> "
    "{y = com.microsoft.SkipLayerNormalization(x, z, g, b)}",
    "com.microsoft.SkipSimplifiedLayerNormalization": "(float[1,2,4] x, float[1,2,4] z) => (y) "
    "<float[4] g = {1,2,3,4}> {y = com.microsoft.SkipSimplifiedLayerNormalization(x, z, g)}",
    "com.microsoft.Trilu": "(float[3,3] x) => (y) {y = com.microsoft.Trilu(x)}",
    "com.microsoft.Unique": "(float[4] x) => (y) {y, i, c = com.microsoft.Unique(x)}",
}


def text_cases() -> Iterator[Case]:
    """Yield the case of each operator that is written here, beside ONNX Runtime."""
    for operator, text in TEXTS.items():
        model = onnx.parser.parse_model(_HEADER + text)
        serialised, feeds = model.SerializeToString(), _feeds(model)
        quantum = 1.0 if "uint8" in text else 1e-5  # roundings may differ
        references = () if operator in RANDOM else (partial(stock_outputs, serialised, feeds),)
        yield Case(
            operator, f"{operator}, written", ".onnx", serialised, feeds, references,
            types_of(model), 1e-4, quantum,
        )  # fmt: skip


def _feeds(model: onnx.ModelProto) -> dict[str, Array]:
    generator = np.random.default_rng(3)
    feeds: dict[str, Array] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [each.dim_value for each in tensor.shape.dim]
        if dtype.kind == "f":
            feeds[value.name] = generator.standard_normal(shape).astype(dtype)
        else:
            high = 2 if dtype.kind == "b" else 256
            feeds[value.name] = generator.integers(0, high, shape).astype(dtype)
    return feeds
