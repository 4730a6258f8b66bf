"""Decode a TFLite file into plain data, trusting nothing it says.

A FlatBuffer is a web of offsets. A hostile one leads them outside the file, states
vectors longer than the file, or lets many entries share one long vector; so every index
and length is checked here, and the total read is limited by the size of the file.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from arenite.planner.errors import MissingDependencyError, ModelFormatError
from arenite.planner.importers.tflite.options import (
    entered_subgraphs,
    variable_options,
    window_attributes,
)
from arenite.planner.operators.imported import AttributeValue

Entry = TypeVar("Entry")

IDENTIFIER = b"TFL3"
OMITTED = -1
"""The index of an optional tensor that is left out."""

_MAX_RANK = 64
_READS_PER_BYTE = 4
_MAX_READ = 2**25
_TABLE_BYTES = 32
_INDEX_BYTES = 4
DAMAGE = (struct.error, IndexError, OverflowError, TypeError, ValueError)
"""Exceptions of the generated readers for an offset outside the file."""


@dataclass(frozen=True, slots=True)
class FileTensor:
    """A tensor as the file states it.

    Attributes:
        name: May be empty, and need not be unique.
        type_code: The schema's `TensorType`.
        shape: No dimension is negative.
        constant: Whether the file holds its elements.
        variable: Whether it is kept from one run to the next.
        has_rank: Whether an empty shape means a scalar.
        signature: The shapes that it may have, -1 for any length; empty if only `shape`.
    """

    name: str
    type_code: int
    shape: tuple[int, ...]
    constant: bool
    variable: bool
    has_rank: bool
    signature: tuple[int, ...]

    @property
    def has_free_dimension(self) -> bool:
        """Whether `shape` is only one of those it may have."""
        return any(length < 0 for length in self.signature)


@dataclass(frozen=True, slots=True)
class FileOperator:
    """An operator as the file states it.

    Attributes:
        op_type: Name of the built-in operator, or the custom one's own.
        inputs: Tensor indexes in the subgraph, `OMITTED` where left out.
        entries: The role and index of each subgraph it enters, in the order they run.
        attributes: How its window slides, if it has one.
        variable: Container and name of the variable whose handle it makes, if it makes one.
    """

    op_type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    entries: tuple[tuple[str, int], ...]
    attributes: Mapping[str, AttributeValue]
    variable: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class FileSubgraph:
    """A subgraph as the file states it; indexes count its own tensors."""

    name: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def decode(data: bytes) -> tuple[FileSubgraph, ...]:
    """Return the subgraphs of the file, the entry first.

    Raises:
        ModelFormatError: The file is damaged: an offset, a length or an index is out of
            range, or it is no TFLite file.
        MissingDependencyError: The schema package is absent.

    Cost: time and memory O(bytes of the file), weights not counted.
    """
    if data[4:8] != IDENTIFIER:
        raise ModelFormatError(
            f"not a TFLite model: bytes 4 to 8 are {data[4:8]!r}, not {IDENTIFIER!r}"
        )
    try:
        import tflite
    except ImportError as error:
        raise MissingDependencyError("tflite", "tflite", "reading a TFLite model") from error
    reader = _FlatReader(len(data), tflite)
    try:
        return reader.subgraphs(tflite.Model.GetRootAs(data, 0))
    except DAMAGE as error:
        raise reader.error("an offset leads outside the file") from error


@dataclass(frozen=True, slots=True)
class _OperatorCode:
    op_type: str
    custom: bool


class _FlatReader:
    """Reads one file; remembers where it is and how much it may still read."""

    def __init__(self, num_bytes: int, schema: ModuleType) -> None:
        self._num_bytes = num_bytes
        self._schema = schema
        self._left = min(_READS_PER_BYTE * num_bytes, _MAX_READ)
        self._where = "model"

    def error(self, reason: str) -> ModelFormatError:
        return ModelFormatError(f"{self._where}: {reason}")

    def subgraphs(self, model: Any) -> tuple[FileSubgraph, ...]:
        filled = self._each(
            "buffer", model.BuffersLength(), lambda i: self._is_filled(model.Buffers(i))
        )
        codes = self._each(
            "operator code",
            model.OperatorCodesLength(),
            lambda i: self._operator_code(model.OperatorCodes(i)),
        )
        num_subgraphs = model.SubgraphsLength()
        if num_subgraphs == 0:
            raise self.error("the file holds no subgraph")
        return self._each(
            "subgraph",
            num_subgraphs,
            lambda i: self._subgraph(model.Subgraphs(i), filled, codes, num_subgraphs),
        )

    def _subgraph(
        self,
        subgraph: Any,
        filled: tuple[bool, ...],
        codes: tuple[_OperatorCode, ...],
        num_subgraphs: int,
    ) -> FileSubgraph:
        name = self._text(subgraph.Name())
        tensors = self._each(
            "tensor", subgraph.TensorsLength(), lambda i: self._tensor(subgraph.Tensors(i), filled)
        )
        operators = self._each(
            "operator",
            subgraph.OperatorsLength(),
            lambda i: self._operator(subgraph.Operators(i), codes, len(tensors), num_subgraphs),
        )
        inputs = self._indexes("input", subgraph.InputsLength(), subgraph.Inputs, len(tensors))
        outputs = self._indexes("output", subgraph.OutputsLength(), subgraph.Outputs, len(tensors))
        return FileSubgraph(name, tensors, operators, inputs, outputs)

    def _is_filled(self, buffer: Any) -> bool:
        """Tell whether the buffer holds bytes, in the FlatBuffer or behind it."""
        num_bytes = buffer.DataLength()
        if num_bytes:
            buffer.Data(num_bytes - 1)
            return True
        start, num_bytes = buffer.Offset(), buffer.Size()
        if start + num_bytes > self._num_bytes:
            raise self.error(
                f"ends at byte {start + num_bytes}, the file at byte {self._num_bytes}"
            )
        return bool(start > 1 and num_bytes > 0)

    def _operator_code(self, code: Any) -> _OperatorCode:
        builtin = _builtin_code(code)
        builtins = self._schema.BuiltinOperator
        if builtin == builtins.CUSTOM:
            return _OperatorCode(self._text(code.CustomCode()) or "CUSTOM", custom=True)
        for name, value in vars(builtins).items():
            if value == builtin and not name.startswith("_"):
                return _OperatorCode(name, custom=False)
        if builtin < 0:
            raise self.error(f"built-in operator {builtin} is unknown")
        return _OperatorCode(f"BUILTIN_{builtin}", custom=False)

    def _tensor(self, tensor: Any, filled: tuple[bool, ...]) -> FileTensor:
        shape = self._dimensions(tensor.ShapeLength(), tensor.Shape)
        signature = self._dimensions(tensor.ShapeSignatureLength(), tensor.ShapeSignature)
        if any(dimension < 0 for dimension in shape):
            raise self.error(f"negative dimension in the shape {shape}")
        buffer = self._index("buffer", tensor.Buffer(), len(filled))
        return FileTensor(
            name=self._text(tensor.Name()),
            type_code=tensor.Type(),
            shape=shape,
            constant=filled[buffer],
            variable=tensor.IsVariable(),
            has_rank=tensor.HasRank(),
            signature=signature,
        )

    def _operator(
        self, operator: Any, codes: tuple[_OperatorCode, ...], num_tensors: int, num_subgraphs: int
    ) -> FileOperator:
        code = codes[self._index("operator code", operator.OpcodeIndex(), len(codes))]
        return FileOperator(
            op_type=code.op_type,
            inputs=self._indexes("input", operator.InputsLength(), operator.Inputs, num_tensors),
            outputs=self._indexes(
                "output", operator.OutputsLength(), operator.Outputs, num_tensors
            ),
            entries=() if code.custom else self._entries(operator, code.op_type, num_subgraphs),
            attributes={}
            if code.custom
            else window_attributes(self._schema, operator, code.op_type),
            variable=None if code.custom else self._variable(operator, code.op_type),
        )

    def _variable(self, operator: Any, op_type: str) -> tuple[str, str] | None:
        options = variable_options(self._schema, operator, op_type)
        return options and (self._text(options.Container()), self._text(options.SharedName()))

    def _entries(
        self, operator: Any, op_type: str, num_subgraphs: int
    ) -> tuple[tuple[str, int], ...]:
        entries = entered_subgraphs(self._schema, operator, op_type)
        if entries is None:
            raise self.error(f"options of {op_type} are missing")
        return tuple(
            (role, self._index(f"{role} subgraph", index, num_subgraphs))
            for role, index in entries
        )

    def _each(self, what: str, count: int, read: Callable[[int], Entry]) -> tuple[Entry, ...]:
        """Return the result of `read` for each entry of a vector of tables."""
        outer = self._where
        prefix = "" if outer == "model" else f"{outer}, "
        self._spend(_TABLE_BYTES * count, f"{count} {what}s")
        entries = []
        for index in range(count):
            self._where = f"{prefix}{what} {index}"
            entries.append(read(index))
        self._where = outer
        return tuple(entries)

    def _indexes(
        self, what: str, count: int, at: Callable[[int], int], limit: int
    ) -> tuple[int, ...]:
        self._spend(_INDEX_BYTES * count, f"{count} {what}s")
        indexes = tuple(at(i) for i in range(count))
        for index in indexes:
            if index != OMITTED:
                self._index(f"{what} tensor", index, limit)
        return indexes

    def _index(self, what: str, index: int, limit: int) -> int:
        if not 0 <= index < limit:
            raise self.error(f"{what} {index} is out of range, the file has {limit}")
        return index

    def _dimensions(self, rank: int, at: Callable[[int], int]) -> tuple[int, ...]:
        if rank > _MAX_RANK:
            raise self.error(f"{rank} dimensions, at most {_MAX_RANK} expected")
        self._spend(_INDEX_BYTES * rank, f"{rank} dimensions")
        return tuple(at(i) for i in range(rank))

    def _text(self, text: bytes | None) -> str:
        text = text or b""
        self._spend(len(text), f"a name of {len(text)} bytes")
        return text.decode(errors="replace")

    def _spend(self, num_bytes: int, what: str) -> None:
        """Deduct `num_bytes` from the bytes that may still be read; valid files have enough."""
        self._left -= num_bytes
        if self._left < 0:
            raise self.error(f"{what} exceed the size of the file")


def _builtin_code(code: Any) -> int:
    """Return the larger of both fields, as the schema says.

    The schema package takes the deprecated one for codes below 127, which new writers leave out.
    """
    table = code._tab  # noqa: SLF001  # it has no other reader of the field
    place = table.Offset(10)
    stated = struct.unpack_from("<i", table.Bytes, place + table.Pos)[0] if place else 0
    return max(int(stated), int(code.DeprecatedBuiltinCode()))
