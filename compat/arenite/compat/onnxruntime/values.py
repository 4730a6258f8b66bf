"""Values that a program binds to inputs and outputs."""

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arenite.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    NotImplemented as Unsupported,
)

Array: TypeAlias = NDArray[Any]

ELEMENT_TYPES = {
    "float": (1, "float32"), "uint8": (2, "uint8"), "int8": (3, "int8"), "uint16": (4, "uint16"),
    "int16": (5, "int16"), "int32": (6, "int32"), "int64": (7, "int64"), "string": (8, "object"),
    "bool": (9, "bool"), "float16": (10, "float16"), "double": (11, "float64"),
    "uint32": (12, "uint32"), "uint64": (13, "uint64"),
}  # fmt: skip
"""Number and numpy type of each element type, by its name in `tensor(...)`."""
_NAMES = {dtype: name for name, (_, dtype) in ELEMENT_TYPES.items()}
_DTYPES = dict(ELEMENT_TYPES.values())


def type_text(dtype: np.dtype[Any]) -> str:
    """Return the type of an array as ONNX Runtime writes it, such as `tensor(float)`."""
    name = "string" if dtype.kind in "US" else _NAMES.get(dtype.name, dtype.name)
    return f"tensor({name})"


def _dtype(element_type: DTypeLike | int) -> np.dtype[Any]:
    return np.dtype(_DTYPES[element_type] if isinstance(element_type, int) else element_type)


def _require_cpu(device_type: str) -> None:
    if str(device_type).lower() != "cpu":
        raise Unsupported(f"device {device_type!r} is unsupported by Arenite; use 'cpu'")


def _at(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Return the array that lies at an address."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    return np.frombuffer(raw, dtype).reshape(tuple(shape))


class OrtValue:
    """A tensor on the CPU."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> Self:
        """Return the value of an array, which it shares."""
        _require_cpu(device_type)
        return cls(np.asarray(numpy_obj))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: DTypeLike | int,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> Self:
        """Return a value whose elements are not set."""
        _require_cpu(device_type)
        return cls(np.empty(tuple(shape), _dtype(element_type)))

    def numpy(self) -> Array:
        """Return the array."""
        return self._array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> object:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    @classmethod
    def from_dlpack(cls, data: Any, /) -> Self:
        """Return the value of another library's tensor, which it shares."""
        return cls(np.from_dlpack(data))

    def update_inplace(self, data: "Array | OrtValue") -> None:
        """Copy elements from an array."""
        np.copyto(self._array, np.asarray(data), casting="no")

    def shape(self) -> list[int]:
        """Return the lengths of its axes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Return its type, such as `tensor(float)`."""
        return type_text(self._array.dtype)

    def element_type(self) -> int:
        """Return the number of its element type in ONNX."""
        return ELEMENT_TYPES[self.data_type()[len("tensor(") : -1]][0]

    def tensor_size_in_bytes(self) -> int:
        """Return its bytes."""
        return int(self._array.nbytes)

    def data_ptr(self) -> int:
        """Return the address of its first element."""
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """Return `cpu`."""
        return "cpu"

    def has_value(self) -> bool:
        """Tell that it has one."""
        return True

    def is_tensor(self) -> bool:
        """Tell that it is one."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Tell that it is none."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Tell that it is none."""
        return False


class OrtValueVector(list[OrtValue]):
    """Several values."""


class Named(Protocol):
    """An input or output."""

    @property
    def name(self) -> str:
        """Its name."""


class Bindable(Protocol):
    """A session, as far as a binding knows it."""

    def get_inputs(self) -> Sequence[Named]:
        """Return the inputs."""


class IOBinding:
    """Values bound to the inputs and outputs of a session."""

    def __init__(self, session: Bindable) -> None:
        self._inputs_known = {each.name for each in session.get_inputs()}
        self._inputs: dict[str, Array] = {}
        self._outputs: dict[str, Array | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Bind an array, which is read when the session runs."""
        if name not in self._inputs_known:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._inputs[name] = np.asarray(arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a value, which is read when the session runs."""
        self.bind_cpu_input(name, ortvalue.numpy())

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: DTypeLike | int,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind the memory at an address, which is read when the session runs."""
        _require_cpu(device_type)
        self.bind_cpu_input(name, _at(buffer_ptr, _dtype(element_type), shape))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: DTypeLike | int | None = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output: in the memory at an address, or in a new array.

        Raises:
            ValueError: There is an address, but no type or shape.
        """
        _require_cpu(device_type)
        self._outputs[name] = None
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise ValueError(
                    "`element_type` and `shape` are to be provided if pre-allocated memory is "
                    "provided"
                )
            self._outputs[name] = _at(buffer_ptr, _dtype(element_type), shape)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Ask for an output in a value."""
        self._outputs[name] = ortvalue.numpy()

    @property
    def inputs(self) -> dict[str, Array]:
        """The arrays that are bound, by the name of the input."""
        return self._inputs

    @property
    def output_names(self) -> list[str]:
        """The outputs that are asked for."""
        return list(self._outputs)

    def take(self, results: Sequence[Array]) -> None:
        """Put the results of a run where they are asked for."""
        self._results = []
        for (name, place), result in zip(self._outputs.items(), results, strict=True):
            if place is None:
                self._results.append(OrtValue(result))
                continue
            if place.shape != result.shape or place.dtype != result.dtype:
                raise RuntimeError(
                    f"Error in execution: output {name} is {result.dtype} {result.shape}, the "
                    f"bound memory {place.dtype} {place.shape}"
                )
            np.copyto(place, result)
            self._results.append(OrtValue(place))

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the outputs of the last run."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Return copies of the outputs of the last run."""
        return [each.numpy().copy() for each in self._results]

    def clear_binding_inputs(self) -> None:
        """Unbind all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Ask for no outputs."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Do nothing: all values are on the CPU."""

    def synchronize_outputs(self) -> None:
        """Do nothing: all values are on the CPU."""
