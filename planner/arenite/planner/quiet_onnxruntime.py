"""ONNX Runtime's sessions without its log: what goes wrong comes as an error, and once."""

from typing import Any, Final

from arenite.planner.errors import MissingDependencyError

FATAL: Final = 4
"""The severity above which ONNX Runtime writes to stderr by itself. What it logs as an error,
coloured and with its source line, it raises too."""


def quiet_options(purpose: str, *, num_threads: int = 1) -> Any:
    """Return the options of a session that logs nothing short of its end.

    Args:
        purpose: What ONNX Runtime is needed for, for people.
        num_threads: Of the kernels.

    Raises:
        MissingDependencyError: The package onnxruntime is absent.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise MissingDependencyError("onnxruntime", "onnx", purpose) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.log_severity_level = FATAL
    return options
