"""TFLite files of one operator, with the subgraphs that it enters, if any; or of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

from bench.sweep.outcome import Array

Options: TypeAlias = tuple[str, Mapping[str, object]] | None

TYPES = {
    "float32": 0, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6, "int16": 7,
    "complex64": 8, "int8": 9, "float64": 10, "resource": 13,
}  # fmt: skip
_MOST_OLD_CODES = 127
_VERSIONS = {"BROADCAST_TO": 2}  # LiteRT's first


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand or a result.

    Attributes:
        shape: Its shape.
        dtype: Name of its element type.
        array: Its elements, if it is a constant.
        scales: Of a quantised tensor, one or one for each index of `axis`.
        zero_point: Of a quantised tensor.
        axis: That the scales belong to.
        is_variable: Whether it keeps its elements from run to run.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    array: Array | None = None
    scales: tuple[float, ...] = ()
    zero_point: int = 0
    axis: int = 0
    is_variable: bool = False

    @property
    def is_fed(self) -> bool:
        """Whether it is an input of the graph, if it is an operand."""
        return self.array is None and not self.is_variable


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator on its operands.

    Attributes:
        code: Name of the built-in operator, or of the custom one.
        inputs: Its operands, None for one that is left out.
        outputs: Its results.
        options: Name of the options' table, and its fields.
        entered: Subgraphs of one operator each, from number 1 on.
        custom_options: Bytes of a custom operator's options.
    """

    code: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options: Options = None
    entered: tuple["Operator", ...] = ()
    custom_options: bytes | None = None

    @property
    def fed(self) -> list[Tensor]:
        """Return the inputs of the graph."""
        return [each for each in self.inputs if each is not None and each.is_fed]

    def with_tensors(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> "Operator":
        """Return the same operator on other operands."""
        return replace(self, inputs=tuple(inputs), outputs=tuple(outputs))


def constant(array: Array, **quantisation: Any) -> Tensor:
    """Return a tensor of these elements."""
    return Tensor(array.shape, array.dtype.name, array, **quantisation)


def file_of(operator: Operator) -> bytes:
    """Return the bytes of a model of one operator."""
    model = schema.ModelT()
    model.version, model.buffers = 3, [schema.BufferT()]
    model.operatorCodes, model.subgraphs = [], []
    for each in (operator, *operator.entered):
        model.subgraphs.append(_subgraph(model, each))
    return _bytes(model)


def file_of_network(
    operators: Sequence[Operator], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> bytes:
    """Return the bytes of a model of operators in order, each tensor an object of its own."""
    model = schema.ModelT()
    model.version, model.buffers, model.operatorCodes = 3, [schema.BufferT()], []
    graph = schema.SubGraphT()
    graph.name, graph.tensors, graph.operators = b"network", [], []
    places: dict[int, int] = {}

    def place(each: Tensor) -> int:
        if id(each) not in places:
            places[id(each)] = len(graph.tensors)
            graph.tensors.append(_tensor(model, each, f"t{len(graph.tensors)}"))
        return places[id(each)]

    graph.inputs = [place(each) for each in inputs]
    codes: dict[str, int] = {}
    for each in operators:
        node = schema.OperatorT()
        node.inputs = [-1 if tensor is None else place(tensor) for tensor in each.inputs]
        node.outputs = [place(tensor) for tensor in each.outputs]
        if each.code not in codes:
            codes[each.code] = len(codes)
            model.operatorCodes.append(_code(each.code))
        node.opcodeIndex = codes[each.code]
        if each.options is not None:
            _set_options(node, *each.options)
        graph.operators.append(node)
    graph.outputs = [place(each) for each in outputs]
    model.subgraphs = [graph]
    return _bytes(model)


def _bytes(model: Any) -> bytes:
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _subgraph(model: Any, operator: Operator) -> Any:
    graph = schema.SubGraphT()
    graph.tensors, graph.name = [], f"graph{len(model.subgraphs)}".encode()
    indexes = []
    for each in (*operator.inputs, *operator.outputs):
        indexes.append(-1 if each is None else len(graph.tensors))
        if each is not None:
            graph.tensors.append(_tensor(model, each, f"t{len(graph.tensors)}"))
    count = len(operator.inputs)
    node = schema.OperatorT()
    node.opcodeIndex, node.inputs, node.outputs = (
        len(model.operatorCodes), indexes[:count], indexes[count:]
    )  # fmt: skip
    model.operatorCodes.append(_code(operator.code))
    if operator.custom_options is not None:
        node.customOptions = np.frombuffer(operator.custom_options, np.uint8)
    if operator.options is not None:
        _set_options(node, *operator.options)
    graph.operators, graph.outputs = [node], node.outputs
    graph.inputs = [
        index
        for index, each in zip(node.inputs, operator.inputs, strict=True)
        if each is not None and each.is_fed
    ]
    return graph


def _tensor(model: Any, each: Tensor, name: str) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type = name.encode(), list(each.shape), TYPES[each.dtype]
    tensor.isVariable, tensor.hasRank, tensor.buffer = each.is_variable, True, 0
    if each.array is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(each.array).tobytes(), np.uint8)
        tensor.buffer = len(model.buffers)
        model.buffers.append(buffer)
    if each.scales:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = list(each.scales)
        tensor.quantization.zeroPoint = [each.zero_point] * len(each.scales)
        tensor.quantization.quantizedDimension = each.axis
    return tensor


def _code(name: str) -> Any:
    entry = schema.OperatorCodeT()
    entry.version = _VERSIONS.get(name, 1)
    if hasattr(schema.BuiltinOperator, name):
        entry.builtinCode = getattr(schema.BuiltinOperator, name)
    else:
        entry.builtinCode, entry.customCode = schema.BuiltinOperator.CUSTOM, name.encode()
    entry.deprecatedBuiltinCode = min(entry.builtinCode, _MOST_OLD_CODES)
    return entry


def _set_options(node: Any, kind: str, fields: Mapping[str, object]) -> None:
    made = getattr(schema, f"{kind}T")()
    for name, value in fields.items():
        assert hasattr(made, name), f"{kind} has no {name}"
        setattr(made, name, value)
    if hasattr(schema.BuiltinOptions, kind):
        node.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
        node.builtinOptions = made
    else:
        node.builtinOptions2Type = getattr(schema.BuiltinOptions2, kind)
        node.builtinOptions2 = made
