"""The C API of ONNX Runtime's own shared library, which lies in its stock wheel.

The Python module of that wheel has a second copy of everything, linked statically, whose
allocators cannot be reached from outside; so a planned session is one of the library's.
"""

import ctypes
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, cast

from arenite.planner.errors import MissingDependencyError
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime.targets.onnxruntime.errors import UnexpectedRuntimeError

_API_VERSION: Final = 17
"""Functions are only ever added, so a newer library has this version too."""

ALL_OPTIMISATIONS: Final = 99
"""What ONNX Runtime does to a graph by default; 0 is nothing."""

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
        """Give something back."""
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
        raise UnexpectedRuntimeError(f"onnxruntime has {len(found)} libraries of its own, not one")
    return found[0]


@cache
def library() -> Library:
    """Return the installed library, loaded once.

    Raises:
        MissingDependencyError: The package is absent.
        UnexpectedRuntimeError: It is not one we know.
    """
    return Library(library_path())
