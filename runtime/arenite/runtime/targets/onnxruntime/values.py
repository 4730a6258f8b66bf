"""Inputs and outputs of a model, as the C API states them and numpy knows them."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arenite.runtime.targets.onnxruntime.errors import InputMismatchError, UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.library import Library

_FREE: Final = -1

ELEMENT_TYPES: Final[dict[int, tuple[Any, str]]] = {
    1: (np.float32, "float"),
    2: (np.uint8, "uint8"),
    3: (np.int8, "int8"),
    4: (np.uint16, "uint16"),
    5: (np.int16, "int16"),
    6: (np.int32, "int32"),
    7: (np.int64, "int64"),
    9: (np.bool_, "bool"),
    10: (np.float16, "float16"),
    11: (np.float64, "double"),
    12: (np.uint32, "uint32"),
    13: (np.uint64, "uint64"),
}
"""By ONNX's number of the element type: numpy's type, and the name in `tensor(...)`."""


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """An input or output of a model, with the attributes of the stock `NodeArg`.

    Attributes:
        name: Unique among the inputs, or the outputs.
        type: Its type, such as `tensor(float)`.
        shape: Outermost first; a name, or None, for a free dimension. Empty for a scalar,
            and where the model states none.
        dtype: Element type.
        element_type: ONNX Runtime's number of that type.
    """

    name: str
    type: str
    shape: list[int | str | None]
    dtype: np.dtype[Any]
    element_type: int

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape if it is stated and no dimension is free."""
        sizes = tuple(size for size in self.shape if isinstance(size, int))
        return sizes if sizes and len(sizes) == len(self.shape) else None

    def checked(self, value: object) -> NDArray[Any]:
        """Return `value` as the C API takes it: in one piece, of the right type and shape.

        Raises:
            InputMismatchError: It is not a value for this input.
        """
        if not isinstance(value, np.ndarray):
            raise InputMismatchError(
                self.name, f"a numpy array is needed, not {type(value).__name__}"
            )
        if value.dtype != self.dtype:
            raise InputMismatchError(self.name, f"{self.dtype} is needed, not {value.dtype}")
        if self.shape and not fits(value.shape, self.shape):
            raise InputMismatchError(
                self.name, f"the shape {tuple(self.shape)} is needed, not {value.shape}"
            )
        return np.ascontiguousarray(value).reshape(value.shape)


def fits(given: Sequence[int], stated: Sequence[int | str | None]) -> bool:
    """Tell whether a shape has the rank and the sizes that a model states."""
    return len(given) == len(stated) and all(
        not isinstance(size, int) or size == wanted
        for size, wanted in zip(stated, given, strict=True)
    )


def value_infos(library: Library, session: int, side: str) -> list[ValueInfo]:
    """Return the inputs or outputs of a session.

    Args:
        library: The library that the session belongs to.
        session: Address of the session.
        side: `Input` or `Output`.

    Raises:
        UnexpectedRuntimeError: One is not a tensor of numbers.
    """
    return [
        _value_info(library, session, side, index, name)
        for index, name in enumerate(value_names(library, session, side))
    ]


def value_names(library: Library, session: int, side: str) -> list[str]:
    """Return the names of the inputs or outputs of a session, whatever they are.

    Args:
        library: The library that the session belongs to.
        session: Address of the session.
        side: `Input` or `Output`.
    """
    count = library.made(f"SessionGet{side}Count", session)
    return [_value_name(library, session, side, index) for index in range(count)]


def _value_name(library: Library, session: int, side: str, index: int) -> str:
    address = library.made(f"SessionGet{side}Name", session, index, library.names)
    try:
        return ctypes.string_at(address).decode()
    finally:
        library.call("AllocatorFree", library.names, address)


def _value_info(library: Library, session: int, side: str, index: int, name: str) -> ValueInfo:
    type_info = library.made(f"SessionGet{side}TypeInfo", session, index)
    try:
        tensor_info = library.made("CastTypeInfoToTensorInfo", type_info)
        if not tensor_info:
            raise UnexpectedRuntimeError(f"{name!r} is not a tensor")
        number = library.made("GetTensorElementType", tensor_info)
        if number not in ELEMENT_TYPES:
            raise UnexpectedRuntimeError(f"{name!r} has elements that numpy does not know")
        kind, label = ELEMENT_TYPES[number]
        sizes = (ctypes.c_int64 * library.made("GetDimensionsCount", tensor_info))()
        library.call("GetDimensions", tensor_info, sizes, len(sizes))
        names = (ctypes.c_char_p * len(sizes))()
        library.call("GetSymbolicDimensions", tensor_info, names, len(sizes))
        shape = [
            size if size != _FREE else _symbol(symbol)
            for size, symbol in zip(sizes, names, strict=True)
        ]
    finally:
        library.release("ReleaseTypeInfo", type_info)
    return ValueInfo(name, f"tensor({label})", shape, np.dtype(kind), number)


def _symbol(name: bytes | None) -> str | None:
    return name.decode() if name else None
