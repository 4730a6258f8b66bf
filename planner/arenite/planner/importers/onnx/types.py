"""Element types and shapes as ONNX and ONNX Runtime write them."""

import math
from typing import NamedTuple

import numpy as np
import onnx
import onnx.helper

from arenite.planner.tensors import DType

_ONNX_NAMES = {DType.FLOAT32: "FLOAT", DType.FLOAT64: "DOUBLE"}
_BY_CODE: dict[int, DType] = {
    onnx.TensorProto.DataType.Value(name): dtype
    for dtype in DType
    if (name := _ONNX_NAMES.get(dtype, dtype.name)) in dict(onnx.TensorProto.DataType.items())
}
_CODES = {dtype: code for code, dtype in _BY_CODE.items()}
_RUNTIME_NAMES = {
    f"tensor({_ONNX_NAMES.get(dtype, dtype.label).lower()})": dtype for dtype in DType
}


class TensorType(NamedTuple):
    """Element type and shape of a tensor, known before the run."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self.dtype.num_bytes(math.prod(self.shape))

    def __str__(self) -> str:
        return f"{self.dtype.label}[{'x'.join(map(str, self.shape))}]"


def read_dtype(code: int) -> DType | None:
    """Return the type of a `TensorProto.DataType`, None if it has no fixed size or is unknown."""
    return _BY_CODE.get(code)


def write_dtype(dtype: DType) -> int:
    """Return the `TensorProto.DataType` of `dtype`."""
    return _CODES[dtype]


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """Return the numpy type that the onnx package computes with."""
    found: np.dtype[np.generic] = onnx.helper.tensor_dtype_to_np_dtype(_CODES[dtype])
    return found


def read_runtime_dtype(name: str) -> DType | None:
    """Return the type that ONNX Runtime calls, for one, `tensor(float)`."""
    return _RUNTIME_NAMES.get(name)


def read_type(proto: onnx.TypeProto) -> TensorType | None:
    """Return the type of a `TypeProto`, None unless it is a fully known tensor type."""
    tensor = proto.tensor_type
    dtype = read_dtype(tensor.elem_type)
    if not proto.HasField("tensor_type") or dtype is None or not tensor.HasField("shape"):
        return None
    shape = []
    for dimension in tensor.shape.dim:
        if not dimension.HasField("dim_value") or dimension.dim_value < 0:
            return None
        shape.append(dimension.dim_value)
    return TensorType(dtype, tuple(shape))


def write_type(proto: onnx.TypeProto, tensor_type: TensorType) -> None:
    """Fill an empty `TypeProto`."""
    proto.tensor_type.elem_type = write_dtype(tensor_type.dtype)
    proto.tensor_type.shape.SetInParent()
    for dimension in tensor_type.shape:
        proto.tensor_type.shape.dim.add().dim_value = dimension


def why_unsizable(proto: onnx.TypeProto) -> str | None:
    """Return why no arena can hold a value of this type, None if one can or nothing is known."""
    kind = proto.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        return f"{kind.removesuffix('_type').replace('_', ' ')} type; only tensors can be planned"
    return why_no_dtype(proto.tensor_type.elem_type)


def why_no_dtype(code: int) -> str | None:
    """Return why elements of a `TensorProto.DataType` have no known size, None if they have."""
    if code == onnx.TensorProto.UNDEFINED or code in _BY_CODE:
        return None
    if code == onnx.TensorProto.STRING:
        return "element type string is unsupported"
    known = onnx.TensorProto.DataType.values()
    name = onnx.TensorProto.DataType.Name(code).lower() if code in known else str(code)
    return f"element type {name} is unsupported"
