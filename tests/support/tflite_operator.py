"""TFLite files of one operator, its options and quantisation, and what LiteRT makes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9}


@dataclass(frozen=True)
class Given:
    """A tensor: constant if it has an array, quantised if it has scales."""

    shape: Sequence[int]
    dtype: str = "float32"
    array: np.ndarray | None = None
    scales: Sequence[float] = ()
    zero_point: int = 0
    axis: int = 0
    is_variable: bool = False
    signature: Sequence[int] = ()


def weights(array: np.ndarray, **quantisation: Any) -> Given:
    return Given(array.shape, array.dtype.name, array, **quantisation)


def operator_model(
    code: str,
    inputs: Sequence[Given | None],
    outputs: Sequence[Given],
    options: tuple[str, Mapping[str, object] | bytes] | None = None,
    *,
    intermediates: Sequence[Given] = (),
) -> bytes:
    """Return the file; inputs without an array are those of the graph.

    Args:
        code: Name of the operator in the schema, or of a custom one.
        inputs: None where one is left out.
        outputs: All of them outputs of the graph.
        options: Their name in the schema and their fields; of a custom operator the name is "",
            and bytes are options in a format of its own.
        intermediates: Tensors that tell how an operator quantises what it computes on the way.
    """
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    flatbuffers = pytest.importorskip("flatbuffers")
    model, graph, operator = schema.ModelT(), schema.SubGraphT(), schema.OperatorT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []
    indexes = []
    for given in (*inputs, *outputs, *intermediates):
        if given is None:
            indexes.append(-1)
            continue
        tensor = schema.TensorT()
        tensor.name = f"t{len(graph.tensors)}".encode()
        tensor.shape, tensor.type = list(given.shape), TYPES[given.dtype]
        tensor.isVariable, tensor.hasRank, tensor.buffer = given.is_variable, True, 0
        if given.signature:
            tensor.shapeSignature = list(given.signature)
        if given.array is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(given.array).tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
        if given.scales:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = list(given.scales)
            tensor.quantization.zeroPoint = [given.zero_point] * len(given.scales)
            tensor.quantization.quantizedDimension = given.axis
        indexes.append(len(graph.tensors))
        graph.tensors.append(tensor)
    entry = schema.OperatorCodeT()
    entry.builtinCode = getattr(schema.BuiltinOperator, code, schema.BuiltinOperator.CUSTOM)
    if entry.builtinCode == schema.BuiltinOperator.CUSTOM:
        entry.customCode = code.encode()
    entry.deprecatedBuiltinCode, entry.version = min(entry.builtinCode, 127), 1
    operator.opcodeIndex = 0
    operator.inputs = indexes[: len(inputs)]
    operator.outputs = indexes[len(inputs) : len(inputs) + len(outputs)]
    operator.intermediates = indexes[len(inputs) + len(outputs) :] or None
    kind, fields = ("", {}) if options is None else options
    if isinstance(fields, bytes):
        operator.customOptions = np.frombuffer(fields, np.uint8)
    elif fields and not kind:
        operator.customOptions = np.frombuffer(flexbuffer(fields), np.uint8)
    elif kind:
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
        operator.builtinOptions = getattr(schema, f"{kind}T")()
        for name, value in fields.items():
            assert hasattr(operator.builtinOptions, name)
            setattr(operator.builtinOptions, name, value)
    graph.operators, graph.outputs = [operator], operator.outputs
    graph.inputs = [
        index
        for index, given in zip(operator.inputs, inputs, strict=True)
        if given is not None and given.array is None and not given.is_variable
    ]
    model.operatorCodes, model.subgraphs = [entry], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def flexbuffer(fields: Mapping[str, object]) -> bytes:
    """Return options of a custom operator; lists of integers become typed vectors."""
    builder = pytest.importorskip("flatbuffers.flexbuffers").Builder()
    with builder.Map():
        for name, value in fields.items():
            builder.Key(name)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


class Reference:
    """LiteRT on a model: its reference kernels, or the others where it has no such kernel."""

    def __init__(self, path: Path, *, with_xnnpack: bool = False) -> None:
        package = pytest.importorskip("ai_edge_litert.interpreter")
        kinds = package.OpResolverType
        try:
            kind = kinds.BUILTIN if with_xnnpack else kinds.BUILTIN_REF
            self._interpreter = package.Interpreter(str(path), experimental_op_resolver_type=kind)
        except ValueError:
            self._interpreter = package.Interpreter(str(path))
        self._interpreter.allocate_tensors()

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        details = self._interpreter.get_input_details()
        for detail, array in zip(details, arrays, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        outputs = self._interpreter.get_output_details()
        return [self._interpreter.get_tensor(detail["index"]) for detail in outputs]
