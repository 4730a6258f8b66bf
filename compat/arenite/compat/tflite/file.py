"""Tensors, operators and signatures of a TFLite file, described as LiteRT does.

The file is mapped and read in place, by the field numbers of TFLite's schema, without a package:
where its program was built before, a start shall not take longer than LiteRT's.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.runtime import Session

Array: TypeAlias = NDArray[Any]
Details: TypeAlias = dict[str, Any]

TYPES: Mapping[int, tuple[str, type]] = {
    0: ("FLOAT32", np.float32), 1: ("FLOAT16", np.float16), 2: ("INT32", np.int32),
    3: ("UINT8", np.uint8), 4: ("INT64", np.int64), 5: ("STRING", np.bytes_),
    6: ("BOOL", np.bool_), 7: ("INT16", np.int16), 8: ("COMPLEX64", np.complex64),
    9: ("INT8", np.int8),
    10: ("FLOAT64", np.float64), 11: ("COMPLEX128", np.complex128), 12: ("UINT64", np.uint64),
    13: ("RESOURCE", np.object_), 14: ("VARIANT", np.object_), 15: ("UINT32", np.uint32),
    16: ("UINT16", np.uint16), 17: ("INT4", np.byte),
}  # fmt: skip
"""Name and numpy type by the schema's `TensorType`."""
TYPE_NAMES = {np.dtype(kind): name for name, kind in TYPES.values() if kind is not np.object_}

_IDENTIFIER = b"TFL3"
_DAMAGE = (struct.error, IndexError, OverflowError, ValueError)
_CUSTOM = 32
_INDEX_TYPES = {1: np.int32, 2: np.uint16, 3: np.uint8}


@dataclass(frozen=True, slots=True)
class Signature:
    """Names by which a subgraph is called: indices of its tensors by name, names sorted."""

    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a FlatBuffer; its fields go by their numbers in the schema."""

    data: Any
    start: int

    def place(self, field: int) -> int:
        """Return where a field is, 0 if it is left out."""
        fields = self.start - int(struct.unpack_from("<i", self.data, self.start)[0])
        (size,) = struct.unpack_from("<H", self.data, fields)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, fields + 4 + 2 * field)
        return self.start + offset if offset else 0

    def number(self, field: int, form: str = "i") -> int:
        """Return a number, 0 if it is left out."""
        place = self.place(field)
        return int(struct.unpack_from(f"<{form}", self.data, place)[0]) if place else 0

    def table(self, field: int) -> Self | None:
        """Return a table, None if it is left out."""
        place = self.place(field)
        return self._at(place) if place else None

    def _at(self, place: int) -> Self:
        (offset,) = struct.unpack_from("<I", self.data, place)
        return type(self)(self.data, place + offset)

    def array(self, field: int, kind: type) -> Array:
        """Return the numbers of a vector in the file, none if it is left out."""
        place = self.place(field)
        if not place:
            return np.empty(0, kind)
        start = self._at(place).start
        (count,) = struct.unpack_from("<I", self.data, start)
        return np.frombuffer(self.data, kind, count, start + 4)

    def tables(self, field: int) -> list[Self]:
        """Return the tables of a vector."""
        offsets = self.array(field, np.uint32)
        start = self._at(self.place(field)).start + 4 if offsets.size else 0
        return [self._at(start + 4 * index) for index in range(offsets.size)]

    def text(self, field: int) -> str:
        """Return a text, empty if it is left out."""
        return self.array(field, np.uint8).tobytes().decode(errors="replace")


class TfliteFile:
    """A TFLite file.

    Args:
        content: The bytes, or a file that is mapped.

    Raises:
        ValueError: It is no TFLite file, or damaged.
        OSError: It cannot be read.
    """

    def __init__(self, content: bytes | Path) -> None:
        self.content: Any = content if isinstance(content, bytes) else _mapped(content)
        if len(self.content) < 8 or self.content[4:8] != _IDENTIFIER:
            raise ValueError("The model is not a valid Flatbuffer buffer")
        try:
            self._model = _Table(self.content, struct.unpack_from("<I", self.content, 0)[0])
            self._subgraphs = self._model.tables(2)
            self._tensors = [each.tables(0) for each in self._subgraphs]
            self._buffers = self._model.tables(4)
            self.signatures: Mapping[str, Signature] = {
                each.text(2): Signature(each.number(4, "I"), _names(each, 0), _names(each, 1))
                for each in self._model.tables(7)
            }
            self.inputs()
        except _DAMAGE as error:
            raise ValueError("The model is not a valid Flatbuffer buffer") from error

    @property
    def num_subgraphs(self) -> int:
        """Number of subgraphs."""
        return len(self._subgraphs)

    def inputs(self) -> list[int]:
        """Return the indices of the inputs of the first subgraph."""
        return self._indices(1)

    def outputs(self) -> list[int]:
        """Return the indices of the outputs of the first subgraph."""
        return self._indices(2)

    def _indices(self, field: int) -> list[int]:
        found: list[int] = self._subgraphs[0].array(field, np.int32).tolist()
        return found

    def num_tensors(self, subgraph: int = 0) -> int:
        """Return the number of tensors."""
        return len(self._tensors[subgraph])

    def details(self, index: int, subgraph: int = 0) -> Details:
        """Return a tensor's description: `shape` is that of the file."""
        tensor = self._tensors[subgraph][index]
        kind = TYPES.get(tensor.number(1, "b"), ("", np.object_))[1]
        found = _described(index, tensor.text(3), tensor.array(0, np.int32).copy(), kind)
        signature = tensor.array(7, np.int32)
        if signature.size:
            found["shape_signature"] = signature.copy()
        stated = tensor.table(4)
        if stated is not None and (scales := stated.array(2, np.float32)).size:
            zeros = np.zeros(scales.size, np.int32)  # where the file states none
            if (given := stated.array(3, np.int64)).size:
                zeros[:] = given
            if scales.size == 1:
                found["quantization"] = float(scales[0]), int(zeros[0])
            found["quantization_parameters"] |= {
                "scales": scales.copy(),
                "zero_points": zeros,
                "quantized_dimension": stated.number(6),
            }
        found["sparsity_parameters"] = _sparsity(tensor.table(6))
        return found

    def constant(self, index: int, subgraph: int = 0) -> Array | None:
        """Return the elements of a constant, None of other tensors."""
        tensor = self._tensors[subgraph][index]
        buffer = self._buffers[tensor.number(2, "I")]
        data = buffer.array(0, np.uint8)
        if not data.size and buffer.number(1, "Q") > 1:  # behind the FlatBuffer
            offset, size = buffer.number(1, "Q"), buffer.number(2, "Q")
            data = np.frombuffer(self.content, np.uint8, size, offset)
        if not data.size:
            return None
        described = self.details(index, subgraph)
        try:
            array: Array = data.view(described["dtype"])
            is_dense = not described["sparsity_parameters"]
            return array.reshape(described["shape"]) if is_dense else array
        except (TypeError, ValueError):  # strings, and types of fewer than 8 bits
            return None

    def operators(self) -> list[Details]:
        """Return the operators of the first subgraph."""
        codes = [_operator_name(each) for each in self._model.tables(1)]
        found = []
        for index, operator in enumerate(self._subgraphs[0].tables(3)):
            inputs, outputs = (operator.array(field, np.int32).copy() for field in (1, 2))
            found.append(
                {
                    "index": index,
                    "op_name": codes[operator.number(0, "I")],
                    "inputs": inputs,
                    "outputs": outputs,
                    "operand_types": self._kinds(inputs),
                    "result_types": self._kinds(outputs),
                }
            )
        return found

    def _kinds(self, indices: Array) -> list[type]:
        return [self.details(index)["dtype"] for index in indices.tolist() if index >= 0]

    def with_all_results(self) -> tuple[bytes, list[int]]:
        """Return the file with the results of all its operators as outputs, and these.

        The vector of outputs is written again behind the file, where the subgraph's table can
        point to.
        """
        graph = self._subgraphs[0]
        outputs = self.outputs()
        for operator in graph.tables(3):
            for index in operator.array(2, np.int32).tolist():
                if index >= 0 and index not in outputs and self._is_plain(index):
                    outputs.append(index)
        field = graph.place(2)
        data = bytearray(self.content)
        data += bytes(-len(data) % 4)
        struct.pack_into("<I", data, field, len(data) - field)
        return bytes(data + struct.pack(f"<I{len(outputs)}i", len(outputs), *outputs)), outputs

    def _is_plain(self, index: int) -> bool:
        kind = self.details(index)["dtype"]
        is_variable = self._tensors[0][index].number(5, "?")
        return kind not in (np.object_, np.bytes_) and not is_variable


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        try:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise ValueError("mmap of size 0 requested: the model is empty") from error


def _described(index: int, name: str, shape: Array, kind: type) -> Details:
    """Return the description of a tensor without quantisation."""
    return {
        "name": name,
        "index": index,
        "shape": shape,
        "shape_signature": shape.copy(),
        "dtype": kind,
        "quantization": (0.0, 0),
        "quantization_parameters": {
            "scales": np.empty(0, np.float32),
            "zero_points": np.empty(0, np.int32),
            "quantized_dimension": 0,
            "block_size": 0,
        },
        "sparsity_parameters": {},
    }


def _names(signature: _Table, field: int) -> dict[str, int]:
    """Return the tensors of a signature by name."""
    entries = signature.tables(field)
    return dict(sorted((each.text(0), each.number(1, "I")) for each in entries))


def _operator_name(code: _Table) -> str:
    builtin = max(code.number(3), code.number(0, "b"))
    if builtin == _CUSTOM:
        return code.text(1)
    from tflite import BuiltinOperator  # late, as programs seldom ask

    names = (name for name, value in vars(BuiltinOperator).items() if value == builtin)
    return next(names, f"BUILTIN_{builtin}")


def _sparsity(stated: _Table | None) -> Details:
    """Return how the elements of a sparse tensor are stored, nothing of a dense one."""
    if stated is None:
        return {}
    levels: list[Details] = []
    for level in stated.tables(2):
        if level.number(0, "b") == 0:
            levels.append({"format": 0, "dense_size": level.number(1)})
            continue
        segments, indices = _index_vector(level, 2), _index_vector(level, 4)
        levels.append({"format": 1, "array_segments": segments, "array_indices": indices})
    found: Details = {"dim_metadata": levels}
    for name, field in (("traversal_order", 0), ("block_map", 1)):
        if (numbers := stated.array(field, np.int32)).size:
            found[name] = numbers.copy()
    return found


def _index_vector(level: _Table, field: int) -> Array:
    """Return a vector of a level, whose type is the field before it."""
    vector = level.table(field + 1)
    kind = _INDEX_TYPES.get(level.number(field, "B"))
    if vector is None or kind is None:
        return np.empty(0, np.int32)
    return vector.array(0, kind).astype(np.int32)


class ProgramPorts:
    """Inputs and outputs of an `.arena` file, in this order; it states no quantisation."""

    def __init__(self, session: Session) -> None:
        self._ports = (*session.inputs, *session.outputs)
        self._num_inputs = len(session.inputs)
        self.signatures: Mapping[str, Signature] = {}
        self.num_subgraphs = 1

    def inputs(self) -> list[int]:
        """Return the indices of the inputs."""
        return list(range(self._num_inputs))

    def outputs(self) -> list[int]:
        """Return the indices of the outputs."""
        return list(range(self._num_inputs, len(self._ports)))

    def num_tensors(self, subgraph: int = 0) -> int:
        """Return the number of inputs and outputs."""
        return len(self._ports[subgraph:])

    def details(self, index: int, subgraph: int = 0) -> Details:
        """Return the description of an input or output."""
        port = self._ports[subgraph:][index]
        return _described(index, port.name, np.array(port.shape, np.int32), port.dtype.type)

    def constant(self, index: int, subgraph: int = 0) -> Array | None:
        """Return None: there are no constants among them."""
        del index, subgraph
        return None

    def operators(self) -> list[Details]:
        """Return none: the operators of the program are not those of a TFLite file."""
        return []
