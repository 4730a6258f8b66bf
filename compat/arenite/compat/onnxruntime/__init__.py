"""The classes and functions of ONNX Runtime that programs use, run by Arenite.

    >>> from arenite.compat import onnxruntime
    >>> session = onnxruntime.InferenceSession("model.onnx")
    >>> session.run(None, {"image": image})

What ONNX Runtime has and this module has not is an `AttributeError` where a program names it.
"""

import logging
from importlib.metadata import PackageNotFoundError, version

from arenite.compat.onnxruntime import capi
from arenite.compat.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from arenite.compat.onnxruntime.session import CPU, InferenceSession, ModelMetadata, NodeArg
from arenite.compat.onnxruntime.values import IOBinding, OrtValue, OrtValueVector

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
    "ModelMetadata", "NodeArg", "OrtValue", "OrtValueVector", "RunOptions", "SessionOptions",
    "capi", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_version_string",
    "preload_dlls", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]  # fmt: skip

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_INTERFACE = "1.20.0"

try:
    __version__ = version("onnxruntime")
except PackageNotFoundError:
    __version__ = _INTERFACE


def get_available_providers() -> list[str]:
    """Return the one provider there is."""
    return [CPU]


def get_all_providers() -> list[str]:
    """Return the one provider there is."""
    return [CPU]


def get_device() -> str:
    """Return `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose names these are."""
    return __version__


def get_build_info() -> str:
    """Return what runs the models."""
    return "Build Info: Arenite"


def set_default_logger_severity(severity: int) -> None:
    """Log messages of a severity or above: 0 all, 1 information, 2 warnings, 3 errors, 4 none."""
    logging.getLogger("arenite.compat").setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accept a verbosity."""


def set_seed(seed: int) -> None:
    """Accept a seed: nothing is random."""


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Do nothing: there are no libraries to load."""


def disable_telemetry_events() -> None:
    """Do nothing: there are none."""


def enable_telemetry_events() -> None:
    """Do nothing: there are none."""
