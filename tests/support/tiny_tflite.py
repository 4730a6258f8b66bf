"""Makes small TFLite files for tests, right or wrong: no index is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import tflite
from tflite import BuiltinOperator, TensorType

_CONTROL = {
    BuiltinOperator.IF: (
        "BuiltinOptions",
        "IfOptions",
        ("ThenSubgraphIndex", "ElseSubgraphIndex"),
    ),
    BuiltinOperator.WHILE: (
        "BuiltinOptions",
        "WhileOptions",
        ("CondSubgraphIndex", "BodySubgraphIndex"),
    ),
    BuiltinOperator.CALL_ONCE: ("BuiltinOptions", "CallOnceOptions", ("InitSubgraphIndex",)),
    BuiltinOperator.STABLEHLO_WHILE: (
        "BuiltinOptions2",
        "StablehloWhileOptions",
        ("CondSubgraphIndex", "BodySubgraphIndex"),
    ),
    BuiltinOperator.STABLEHLO_COMPOSITE: (
        "BuiltinOptions2",
        "StableHLOCompositeOptions",
        ("DecompositionSubgraphIndex",),
    ),
}


@dataclass(frozen=True)
class TinySparsity:
    """`levels` are the size of a dense one, segments and indices of a sparse one."""

    order: Sequence[int]
    blocks: Sequence[int]
    levels: Sequence[int | tuple[Sequence[int], Sequence[int]]]
    kind: str = "Int32Vector"


@dataclass(frozen=True)
class TinyTensor:
    """`data` fills a buffer of its own, or states offset and size of bytes behind the
    FlatBuffer; `buffer` states an index instead. Integers with `scales` stand for numbers.
    """

    name: str
    shape: Sequence[int] = (16,)
    type: int = TensorType.INT8
    data: bytes | tuple[int, int] = b""
    buffer: int | None = None
    variable: bool = False
    sparse: bool | TinySparsity = False
    signature: Sequence[int] | None = None
    has_rank: bool = True
    scales: Sequence[float] = ()
    zero_point: int = 0


@dataclass(frozen=True)
class TinyOperator:
    """`code` is a built-in operator or the name of a custom one, `code_index` another
    place in the table of codes, `variable` the name of the variable of a handle; `options`
    are a table of integers.
    """

    code: int | str
    inputs: Sequence[int]
    outputs: Sequence[int]
    subgraphs: Sequence[int] = ()
    code_index: int | None = None
    variable: str | None = None
    options: tuple[str, Mapping[str, int]] | None = None


@dataclass(frozen=True)
class TinySubgraph:
    tensors: Sequence[TinyTensor]
    operators: Sequence[TinyOperator]
    inputs: Sequence[int]
    outputs: Sequence[int]
    name: str = ""


@dataclass
class _Maker:
    builder: flatbuffers.Builder = field(default_factory=flatbuffers.Builder)
    buffers: list[bytes | tuple[int, int]] = field(default_factory=lambda: [b""])
    codes: list[int | str] = field(default_factory=list)
    tensors: dict[int, int] = field(default_factory=dict)

    def ints(self, values: Sequence[int]) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependInt32(value)
        return int(self.builder.EndVector())

    def tables(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def table(self, kind: str, **fields: int | None) -> int:
        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            if value is not None:
                getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        return int(getattr(tflite, f"{kind}End")(self.builder))

    def buffer(self, data: bytes | tuple[int, int]) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def buffer_table(self, data: bytes | tuple[int, int]) -> int:
        if isinstance(data, tuple):
            return self.table("Buffer", Offset=data[0], Size=data[1])
        return self.table("Buffer", Data=self.builder.CreateByteVector(data) if data else None)

    def tensor(self, tensor: TinyTensor) -> int:
        """Return the table, the same one when the same object comes again."""
        if id(tensor) not in self.tensors:
            self.tensors[id(tensor)] = self.new_tensor(tensor)
        return self.tensors[id(tensor)]

    def new_tensor(self, tensor: TinyTensor) -> int:
        buffer = self.buffer(tensor.data) if tensor.data else 0
        return self.table(
            "Tensor",
            Name=self.builder.CreateString(tensor.name),
            Shape=self.ints(tensor.shape),
            ShapeSignature=None if tensor.signature is None else self.ints(tensor.signature),
            Sparsity=self.sparsity(tensor.sparse) if tensor.sparse else None,
            Quantization=self.quantisation(tensor) if tensor.scales else None,
            Type=tensor.type,
            Buffer=buffer if tensor.buffer is None else tensor.buffer,
            IsVariable=tensor.variable,
            HasRank=tensor.has_rank,
        )

    def quantisation(self, tensor: TinyTensor) -> int:
        scales = np.array(tensor.scales, np.float32)
        zeros = np.full(len(tensor.scales), tensor.zero_point, np.int64)
        return self.table(
            "QuantizationParameters",
            Scale=self.builder.CreateNumpyVector(scales),
            ZeroPoint=self.builder.CreateNumpyVector(zeros),
        )

    def sparsity(self, sparsity: TinySparsity | bool) -> int:
        if not isinstance(sparsity, TinySparsity):
            return self.table("SparsityParameters")
        levels = []
        for level in sparsity.levels:
            if isinstance(level, int):
                levels.append(self.table("DimensionMetadata", DenseSize=level))
                continue
            segments, indices = (self.numbers(sparsity.kind, each) for each in level)
            kind = getattr(tflite.SparseIndexVector, sparsity.kind)
            levels.append(
                self.table(
                    "DimensionMetadata", Format=tflite.DimensionType.SPARSE_CSR,
                    ArraySegmentsType=kind, ArraySegments=segments,
                    ArrayIndicesType=kind, ArrayIndices=indices,
                )
            )  # fmt: skip
        return self.table(
            "SparsityParameters",
            TraversalOrder=self.ints(sparsity.order),
            BlockMap=self.ints(sparsity.blocks),
            DimMetadata=self.tables(levels),
        )

    def numbers(self, kind: str, values: Sequence[int]) -> int:
        dtype = {"Int32Vector": "<i4", "Uint16Vector": "<u2", "Uint8Vector": "u1"}[kind]
        return self.table(kind, Values=self.builder.CreateNumpyVector(np.array(values, dtype)))

    def operator(self, operator: TinyOperator) -> int:
        if operator.code not in self.codes:
            self.codes.append(operator.code)
        options: dict[str, int] = {}
        if operator.subgraphs:
            union, kind, names = _CONTROL[int(operator.code)]
            indexes = dict(zip(names, operator.subgraphs, strict=True))
            options[union] = self.table(kind, **indexes)
            options[f"{union}Type"] = getattr(getattr(tflite, union), kind)
        if operator.variable is not None:
            name = self.builder.CreateString(operator.variable)
            options["BuiltinOptions"] = self.table("VarHandleOptions", SharedName=name)
            options["BuiltinOptionsType"] = tflite.BuiltinOptions.VarHandleOptions
        if operator.options is not None:
            kind, fields = operator.options
            options["BuiltinOptions"] = self.table(kind, **fields)
            options["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, kind)
        return self.table(
            "Operator",
            OpcodeIndex=self.codes.index(operator.code)
            if operator.code_index is None
            else operator.code_index,
            Inputs=self.ints(operator.inputs),
            Outputs=self.ints(operator.outputs),
            **options,
        )

    def subgraph(self, subgraph: TinySubgraph) -> int:
        return self.table(
            "SubGraph",
            Name=self.builder.CreateString(subgraph.name),
            Tensors=self.tables([self.tensor(tensor) for tensor in subgraph.tensors]),
            Operators=self.tables([self.operator(operator) for operator in subgraph.operators]),
            Inputs=self.ints(subgraph.inputs),
            Outputs=self.ints(subgraph.outputs),
        )

    def operator_code(self, code: int | str) -> int:
        if isinstance(code, str):
            name = self.builder.CreateString(code)
            return self.table("OperatorCode", CustomCode=name, **_code(BuiltinOperator.CUSTOM))
        return self.table("OperatorCode", **_code(code))


def _code(builtin: int) -> dict[str, int]:
    return {"DeprecatedBuiltinCode": min(builtin, 127), "BuiltinCode": builtin}


def tiny_tflite(*subgraphs: TinySubgraph, metadata: Mapping[str, bytes] | None = None) -> bytes:
    maker = _Maker()
    builder = maker.builder
    entries = [
        maker.table("Metadata", Name=builder.CreateString(name), Buffer=maker.buffer(data))
        for name, data in (metadata or {}).items()
    ]
    fields = {
        "Version": 3,
        "Subgraphs": maker.tables([maker.subgraph(subgraph) for subgraph in subgraphs]),
        "OperatorCodes": maker.tables([maker.operator_code(code) for code in maker.codes]),
        "Metadata": maker.tables(entries),
        "Buffers": maker.tables([maker.buffer_table(data) for data in maker.buffers]),
    }
    builder.Finish(maker.table("Model", **fields), file_identifier=b"TFL3")
    return bytes(builder.Output())
