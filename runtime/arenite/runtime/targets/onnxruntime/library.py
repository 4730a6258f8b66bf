"""ONNX Runtime's shared library, through its public C API, and its sessions with our allocator.

The Python module of the stock wheel has a second copy of everything, linked statically, whose
allocators cannot be reached from outside; so a planned session is one of the library's.
"""

import ctypes
import os
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime._allocator import PlanAllocator, Runner
from arenite.runtime.targets.onnxruntime.stock import InputMismatchError, RunFailedError, refusal

_API_VERSION: Final = 17
"""Functions are only ever added, so a newer library has this version too."""

ALL_OPTIMISATIONS: Final = 99
"""Optimisation level of ONNX Runtime by default; 0 is none."""

_INT: Final = ctypes.c_int
_SIZE: Final = ctypes.c_size_t
_POINTER: Final = ctypes.c_void_p
_TEXT: Final = ctypes.c_char_p

_STATUS_FUNCTIONS: Final[dict[str, tuple[int, tuple[type, ...]]]] = {
    "CreateEnv": (3, (_INT, _TEXT, _POINTER)),
    "CreateSession": (7, (_POINTER, _TEXT, _POINTER, _POINTER)),
    "CreateSessionFromArray": (8, (_POINTER, _POINTER, _SIZE, _POINTER, _POINTER)),
    "CreateSessionOptions": (10, (_POINTER,)),
    "SetOptimizedModelFilePath": (11, (_POINTER, _TEXT)),
    "DisableMemPattern": (17, (_POINTER,)),
    "DisableCpuMemArena": (19, (_POINTER,)),
    "SetSessionLogSeverityLevel": (22, (_POINTER, _INT)),
    "SetSessionGraphOptimizationLevel": (23, (_POINTER, _INT)),
    "SetIntraOpNumThreads": (24, (_POINTER, _INT)),
    "SessionGetInputCount": (30, (_POINTER, _POINTER)),
    "SessionGetOutputCount": (31, (_POINTER, _POINTER)),
    "SessionGetInputTypeInfo": (33, (_POINTER, _SIZE, _POINTER)),
    "SessionGetOutputTypeInfo": (34, (_POINTER, _SIZE, _POINTER)),
    "SessionGetInputName": (36, (_POINTER, _SIZE, _POINTER, _POINTER)),
    "SessionGetOutputName": (37, (_POINTER, _SIZE, _POINTER, _POINTER)),
    "CastTypeInfoToTensorInfo": (55, (_POINTER, _POINTER)),
    "GetTensorElementType": (60, (_POINTER, _POINTER)),
    "GetDimensionsCount": (61, (_POINTER, _POINTER)),
    "GetDimensions": (62, (_POINTER, _POINTER, _SIZE)),
    "GetSymbolicDimensions": (63, (_POINTER, _POINTER, _SIZE)),
    "CreateCpuMemoryInfo": (69, (_INT, _INT, _POINTER)),
    "AllocatorAlloc": (75, (_POINTER, _SIZE, _POINTER)),
    "AllocatorFree": (76, (_POINTER, _POINTER)),
    "GetAllocatorWithDefaultOptions": (78, (_POINTER,)),
    "AddSessionConfigEntry": (130, (_POINTER, _TEXT, _TEXT)),
    "CreateAllocator": (131, (_POINTER, _POINTER, _POINTER)),
    "RegisterAllocator": (176, (_POINTER, _POINTER)),
    "UnregisterAllocator": (177, (_POINTER, _POINTER)),
}
_RELEASE_FUNCTIONS: Final = {
    "ReleaseStatus": 93,
    "ReleaseSession": 95,
    "ReleaseTypeInfo": 98,
    "ReleaseSessionOptions": 100,
    "ReleaseAllocator": 132,
}
_GET_ERROR_MESSAGE: Final = 2


class StatusError(Exception):
    """A function of the C API failed; the text is ONNX Runtime's own."""


class _ApiBase(ctypes.Structure):
    _fields_ = (("get_api", ctypes.CFUNCTYPE(_POINTER, ctypes.c_uint32)),)


class Library:
    """ONNX Runtime's C API, with its one environment.

    Attributes:
        table: Address of its table of functions.
        env: Address of the environment; it lives as long as the process.
        cpu: Address of the description of CPU memory as devices allocate it.
        names: Address of the allocator that gives names their memory.

    Args:
        path: The shared library.

    Raises:
        UnexpectedRuntimeError: It is not one we know.
    """

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
            library.OrtGetApiBase.restype = ctypes.POINTER(_ApiBase)
            base = library.OrtGetApiBase().contents
        except (OSError, AttributeError) as error:
            raise UnexpectedRuntimeError(f"{path.name} cannot be used: {error}") from error
        table = base.get_api(_API_VERSION)
        if table is None:
            raise UnexpectedRuntimeError(f"{path.name} has no C API of version {_API_VERSION}")
        self.table: int = table
        addresses = ctypes.cast(table, ctypes.POINTER(_POINTER))
        self._message = ctypes.CFUNCTYPE(_TEXT, _POINTER)(addresses[_GET_ERROR_MESSAGE])
        self._status_functions = {
            name: ctypes.CFUNCTYPE(_POINTER, *arguments)(addresses[index])
            for name, (index, arguments) in _STATUS_FUNCTIONS.items()
        }
        self._release_functions = {
            name: ctypes.CFUNCTYPE(None, _POINTER)(addresses[index])
            for name, index in _RELEASE_FUNCTIONS.items()
        }
        self.env = self.made("CreateEnv", FATAL, b"arenite")
        self.cpu = self.made("CreateCpuMemoryInfo", 0, 0)
        self.names = self.made("GetAllocatorWithDefaultOptions")

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that returns a status.

        Raises:
            StatusError: It failed.
        """
        status = self._status_functions[name](*arguments)
        if status:
            message = cast(bytes, self._message(status)).decode(errors="replace")
            self.release("ReleaseStatus", status)
            raise StatusError(message)

    def made(self, name: str, *arguments: object) -> int:
        """Return the address or number that a function gives by its last argument.

        Raises:
            StatusError: It failed.
        """
        result = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(result))
        return result.value or 0

    def created(self, model: Path | bytes, options: int) -> int:
        """Return the address of a new session of a model file, or of its bytes.

        Raises:
            StatusError: ONNX Runtime refuses it.
        """
        if isinstance(model, bytes):
            return self.made("CreateSessionFromArray", self.env, model, len(model), options)
        return self.made("CreateSession", self.env, os.fsencode(model), options)

    def release(self, name: str, address: int) -> None:
        self._release_functions[name](address)


def library_path() -> Path:
    """Return ONNX Runtime's shared library, without importing the package.

    Raises:
        MissingDependencyError: The package is absent.
        UnexpectedRuntimeError: It has no library, or several.
    """
    spec = find_spec("onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError("onnxruntime", "onnx", "running a model in ONNX Runtime")
    folder = Path(spec.submodule_search_locations[0]) / "capi"
    found = [
        path
        for path in sorted(folder.glob("libonnxruntime*"))
        if re.fullmatch(r"libonnxruntime(\.so\.[\d.]+|\.[\d.]+\.dylib)", path.name)
    ]
    if len(found) != 1:
        raise UnexpectedRuntimeError(f"onnxruntime has {len(found)} libraries, expected one")
    return found[0]


@cache
def library() -> Library:
    """Return the installed library, loaded once.

    Raises:
        MissingDependencyError: The package is absent.
        UnexpectedRuntimeError: It is not one we know.
    """
    return Library(library_path())


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
                self.name, f"is a {type(value).__name__}, expected a numpy array"
            )
        if value.dtype != self.dtype:
            raise InputMismatchError(self.name, f"is {value.dtype}, expected {self.dtype}")
        if self.shape and not fits(value.shape, self.shape):
            raise InputMismatchError(
                self.name, f"has shape {value.shape}, expected {tuple(self.shape)}"
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
    """Return the names of the inputs or outputs of a session, of any type.

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
            raise UnexpectedRuntimeError(f"{name!r} has an element type unknown to numpy")
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


_REGISTERING: Final = threading.Lock()


class _RefusalError(Exception):
    """ONNX Runtime refuses the model; the text is its own."""


class HostedSession:
    """A session with an allocator of its own.

    Attributes:
        inputs: Inputs of the model.
        outputs: Outputs of the model.

    Args:
        library: ONNX Runtime's.
        model: The model file, or its bytes.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.
        origin: The model that people know, if `model` is made of it.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model.
        UnexpectedRuntimeError: The session does not ask our allocator, or the model takes
            or has an output that is not a tensor of numbers.
    """

    def __init__(
        self,
        library: Library,
        model: Path | bytes,
        *,
        optimise: bool,
        num_threads: int,
        origin: Path | bytes | None = None,
    ) -> None:
        self.allocator = PlanAllocator()
        self.allocator.set_memory_info(library.cpu)
        self._library = library
        try:
            self._session = _created(library, self.allocator, model, optimise, num_threads)
        except _RefusalError as error:
            raise refusal(model, error, origin) from error
        # The allocator must live until the session has given everything back.
        weakref.finalize(self, _release, library, self._session, self.allocator)
        self._check_allocator()
        self.inputs = value_infos(library, self._session, "Input")
        self.outputs = value_infos(library, self._session, "Output")
        self._runner = Runner(
            library.table, self._session, library.cpu, _types(self.inputs), _types(self.outputs)
        )

    def run(
        self,
        inputs: Sequence[NDArray[Any]],
        *,
        bound: bool,
        arena: NDArray[np.uint8] | None = None,
    ) -> list[NDArray[Any]]:
        """Run the model once and return all outputs.

        Args:
            inputs: Checked, in the order of `inputs`.
            bound: Let the model write outputs of stated shape into the arrays returned;
                the others, or all of them, are copied from where the session made them.
            arena: The arena; outputs in it are returned as views, not copies.

        Raises:
            RunFailedError: ONNX Runtime fails.
        """
        results = [
            np.empty(value.static_shape, value.dtype)
            if bound and value.static_shape is not None
            else None
            for value in self.outputs
        ]
        try:
            return self._runner.run(inputs, results, arena)
        except RuntimeError as error:
            raise RunFailedError(f"the run failed in ONNX Runtime: {error}") from error

    def _check_allocator(self) -> None:
        """Return if the session's memory comes from our allocator.

        Raises:
            UnexpectedRuntimeError: It does not.
        """
        library, before = self._library, self.allocator.num_calls
        try:
            own = library.made("CreateAllocator", self._session, library.cpu)
        except StatusError as error:
            raise UnexpectedRuntimeError(f"the session has no allocator: {error}") from error
        try:
            library.call("AllocatorFree", own, library.made("AllocatorAlloc", own, 1))
        finally:
            library.release("ReleaseAllocator", own)
        if self.allocator.num_calls == before:
            raise UnexpectedRuntimeError("the session does not use the registered allocator")


def _created(
    library: Library, allocator: PlanAllocator, model: Path | bytes, optimise: bool, threads: int
) -> int:
    """Return the address of a new session; it keeps the allocator that it finds registered."""
    options = library.made("CreateSessionOptions")
    try:
        library.call("SetSessionLogSeverityLevel", options, FATAL)
        library.call(
            "SetSessionGraphOptimizationLevel", options, ALL_OPTIMISATIONS if optimise else 0
        )
        library.call("SetIntraOpNumThreads", options, threads)
        library.call("DisableMemPattern", options)  # so that every tensor is allocated by itself
        library.call("DisableCpuMemArena", options)
        library.call("AddSessionConfigEntry", options, b"session.use_env_allocators", b"1")
        with _REGISTERING:  # one allocator for CPU memory at a time
            library.call("RegisterAllocator", library.env, allocator.address)
            try:
                return library.created(model, options)
            except StatusError as error:
                raise _RefusalError(str(error)) from error
            finally:
                library.call("UnregisterAllocator", library.env, library.cpu)
    except StatusError as error:
        raise UnexpectedRuntimeError(f"the session cannot be set up: {error}") from error
    finally:
        library.release("ReleaseSessionOptions", options)


def _release(library: Library, session: int, _allocator: PlanAllocator) -> None:
    library.release("ReleaseSession", session)


def _types(values: Sequence[ValueInfo]) -> list[tuple[str, int]]:
    return [(value.name, value.element_type) for value in values]
