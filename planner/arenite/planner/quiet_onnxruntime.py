"""ONNX Runtime sessions that do not log: a failure is reported once, as an error."""

from typing import Any, Final

from arenite.planner.errors import needing

FATAL: Final = 4
"""The severity from which ONNX Runtime still logs to stderr. Whatever it logs below that, it
also raises."""


def quiet_options(purpose: str, *, num_threads: int = 1) -> Any:
    """Return options of a session that logs fatal errors only.

    Args:
        purpose: The use of ONNX Runtime, for messages.
    """
    with needing("onnxruntime", "onnx", purpose):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.log_severity_level = FATAL
    return options


def silence_default_logger() -> None:
    """Limit the log of ONNX Runtime outside sessions to fatal errors, in this process.

    For commands, which report every failure themselves. A library leaves its user's logger alone.
    Nothing is done where the package is absent.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return
    onnxruntime.set_default_logger_severity(FATAL)
