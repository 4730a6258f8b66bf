"""ONNX Runtime: the stock library, with every allocation of a run where we want it."""

from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.export import OnnxruntimeExport, export_onnxruntime
from arenite.runtime.targets.onnxruntime.recording import onnxruntime_problem
from arenite.runtime.targets.onnxruntime.session import PlannedSession, RunMemory
from arenite.runtime.targets.onnxruntime.stock import (
    InputMismatchError,
    RunFailedError,
    StockSessionWarning,
    UnknownOutputError,
    ordered_options,
)

__all__ = [
    "InputMismatchError",
    "OnnxruntimeExport",
    "PlannedSession",
    "RunFailedError",
    "RunMemory",
    "StockSessionWarning",
    "UnexpectedRuntimeError",
    "UnknownOutputError",
    "export_onnxruntime",
    "onnxruntime_problem",
    "ordered_options",
]
