"""Tensors, operators and signatures of a TFLite file, described as LiteRT does.

Only pages of the file that are asked for are read: its weights are in the program already.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError
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
_DAMAGE = (struct.error, IndexError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Signature:
    """Names by which a subgraph is called: indices of its tensors by name, names sorted."""

    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


class TfliteFile:
    """A TFLite file.

    Args:
        content: The bytes, or a file that is mapped.

    Raises:
        ValueError: It is no TFLite file, or damaged.
        OSError: It cannot be read.
        MissingDependencyError: The schema package is absent.
    """

    def __init__(self, content: bytes | Path) -> None:
        self.content: Any = content if isinstance(content, bytes) else _mapped(content)
        if len(self.content) < 8 or self.content[4:8] != _IDENTIFIER:
            raise ValueError("The model is not a valid Flatbuffer buffer")
        try:
            import tflite
        except ImportError as error:
            raise MissingDependencyError("tflite", "tflite", "reading a TFLite model") from error
        self._schema: ModuleType = tflite
        try:
            self._model: Any = tflite.Model.GetRootAs(self.content, 0)
            self._subgraphs = [
                self._model.Subgraphs(i) for i in range(self._model.SubgraphsLength())
            ]
            self.signatures: Mapping[str, Signature] = dict(
                map(_signature, map(self._model.SignatureDefs, range(self._num_signatures())))
            )
            self.inputs()
        except _DAMAGE as error:
            raise ValueError("The model is not a valid Flatbuffer buffer") from error

    def _num_signatures(self) -> int:
        return int(self._model.SignatureDefsLength())

    @property
    def num_subgraphs(self) -> int:
        """Number of subgraphs."""
        return len(self._subgraphs)

    def inputs(self, subgraph: int = 0) -> list[int]:
        """Return the indices of the inputs."""
        found = self._subgraphs[subgraph]
        return [found.Inputs(i) for i in range(found.InputsLength())]

    def outputs(self, subgraph: int = 0) -> list[int]:
        """Return the indices of the outputs."""
        found = self._subgraphs[subgraph]
        return [found.Outputs(i) for i in range(found.OutputsLength())]

    def num_tensors(self, subgraph: int = 0) -> int:
        """Return the number of tensors."""
        return int(self._subgraphs[subgraph].TensorsLength())

    def is_variable(self, index: int) -> bool:
        """Tell whether a tensor of the first subgraph is kept from one run to the next."""
        return bool(self._subgraphs[0].Tensors(index).IsVariable())

    def details(self, index: int, subgraph: int = 0) -> Details:
        """Return a tensor's description: `shape` is that of the file."""
        tensor = self._subgraphs[subgraph].Tensors(index)
        shape = _lengths(tensor.ShapeLength(), tensor.ShapeAsNumpy)
        signature = _lengths(tensor.ShapeSignatureLength(), tensor.ShapeSignatureAsNumpy)
        name = (tensor.Name() or b"").decode(errors="replace")
        kind = TYPES.get(tensor.Type(), ("", np.object_))[1]
        found = _described(index, name, shape, kind)
        if signature.size:
            found["shape_signature"] = signature
        stated = tensor.Quantization()
        if stated is not None and stated.ScaleLength():
            scales = np.array(stated.ScaleAsNumpy())
            zeros = np.zeros(scales.size, np.int32)  # where the file states none
            if stated.ZeroPointLength():
                zeros[:] = stated.ZeroPointAsNumpy()
            if scales.size == 1:
                found["quantization"] = float(scales[0]), int(zeros[0])
            found["quantization_parameters"] |= {
                "scales": scales,
                "zero_points": zeros,
                "quantized_dimension": stated.QuantizedDimension(),
            }
        found["sparsity_parameters"] = _sparsity(tensor.Sparsity())
        return found

    def constant(self, index: int, subgraph: int = 0) -> Array | None:
        """Return the elements of a constant, None of other tensors."""
        tensor = self._subgraphs[subgraph].Tensors(index)
        buffer = self._model.Buffers(tensor.Buffer())
        if buffer.DataLength():
            data = buffer.DataAsNumpy()
        elif buffer.Offset() > 1 and buffer.Size():
            data = np.frombuffer(self.content, np.uint8, buffer.Size(), buffer.Offset())
        else:
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
        graph = self._subgraphs[0]
        found = []
        for index in range(graph.OperatorsLength()):
            operator = graph.Operators(index)
            inputs = _lengths(operator.InputsLength(), operator.InputsAsNumpy)
            outputs = _lengths(operator.OutputsLength(), operator.OutputsAsNumpy)
            found.append(
                {
                    "index": index,
                    "op_name": self._code(operator.OpcodeIndex()),
                    "inputs": inputs,
                    "outputs": outputs,
                    "operand_types": self._kinds(inputs),
                    "result_types": self._kinds(outputs),
                }
            )
        return found

    def _kinds(self, indices: Array) -> list[type]:
        return [self.details(int(index))["dtype"] for index in indices if index >= 0]

    def _code(self, index: int) -> str:
        code = self._model.OperatorCodes(index)
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        builtins = self._schema.BuiltinOperator
        if builtin == builtins.CUSTOM:
            return str((code.CustomCode() or b"").decode(errors="replace"))
        names = (name for name, value in vars(builtins).items() if value == builtin)
        return next(names, f"BUILTIN_{builtin}")

    def with_all_results(self) -> tuple[bytes, list[int]]:
        """Return the file with the results of all its operators as outputs, and these.

        The vector of outputs is written again behind the file, where the subgraph's table can
        point to.
        """
        graph = self._subgraphs[0]
        outputs = self.outputs()
        for operator in map(graph.Operators, range(graph.OperatorsLength())):
            for index in map(operator.Outputs, range(operator.OutputsLength())):
                if index >= 0 and index not in outputs and self._is_plain(index):
                    outputs.append(index)
        field = graph._tab.Pos + graph._tab.Offset(8)  # noqa: SLF001  # no reader states where
        data = bytearray(self.content)
        data += bytes(-len(data) % 4)
        struct.pack_into("<I", data, field, len(data) - field)
        return bytes(data + struct.pack(f"<I{len(outputs)}i", len(outputs), *outputs)), outputs

    def _is_plain(self, index: int) -> bool:
        kind = self.details(index)["dtype"]
        return kind not in (np.object_, np.bytes_) and not self.is_variable(index)


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


def _lengths(count: int, array: Any) -> Array:
    return np.array(array(), np.int32) if count else np.empty(0, np.int32)


def _signature(stated: Any) -> tuple[str, Signature]:
    def names(count: int, at: Any) -> dict[str, int]:
        entries = map(at, range(count))
        return dict(sorted((each.Name().decode(), each.TensorIndex()) for each in entries))

    key = (stated.SignatureKey() or b"").decode()
    inputs = names(stated.InputsLength(), stated.Inputs)
    outputs = names(stated.OutputsLength(), stated.Outputs)
    return key, Signature(stated.SubgraphIndex(), inputs, outputs)


def _sparsity(stated: Any) -> Details:
    """Return how the elements of a sparse tensor are stored, nothing of a dense one."""
    if stated is None:
        return {}
    levels = []
    for level in map(stated.DimMetadata, range(stated.DimMetadataLength())):
        if level.Format() == 0:
            levels.append({"format": 0, "dense_size": level.DenseSize()})
            continue
        segments = _index_vector(level.ArraySegments(), level.ArraySegmentsType())
        indices = _index_vector(level.ArrayIndices(), level.ArrayIndicesType())
        levels.append({"format": 1, "array_segments": segments, "array_indices": indices})
    found: Details = {"dim_metadata": levels}
    if stated.TraversalOrderLength():
        found["traversal_order"] = np.array(stated.TraversalOrderAsNumpy())
    if stated.BlockMapLength():
        found["block_map"] = np.array(stated.BlockMapAsNumpy())
    return found


def _index_vector(table: Any, kind: int) -> Array:
    import tflite

    found = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}[kind]()
    found.Init(table.Bytes, table.Pos)
    return np.array(found.ValuesAsNumpy(), np.int32)


class ProgramPorts:
    """Inputs and outputs of an `.arena` file, in this order; it states no quantisation."""

    def __init__(self, session: Session) -> None:
        self._ports = (*session.inputs, *session.outputs)
        self._num_inputs = len(session.inputs)
        self.signatures: Mapping[str, Signature] = {}
        self.num_subgraphs = 1

    def inputs(self, subgraph: int = 0) -> list[int]:
        """Return the indices of the inputs."""
        return list(range(self._num_inputs))[subgraph:]

    def outputs(self, subgraph: int = 0) -> list[int]:
        """Return the indices of the outputs."""
        return list(range(self._num_inputs, len(self._ports)))[subgraph:]

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
