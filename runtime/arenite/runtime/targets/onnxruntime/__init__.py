"""ONNX Runtime: the stock library, with every allocation of a run where we want it."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.targets.onnxruntime.export import OnnxruntimeExport, export_onnxruntime
    from arenite.runtime.targets.onnxruntime.recording import (
        StatedInput,
        StockMemory,
        drawn_feeds,
        onnxruntime_problem,
        stock_memory,
    )
    from arenite.runtime.targets.onnxruntime.session import PlannedSession, RunMemory
    from arenite.runtime.targets.onnxruntime.stock import (
        InputMismatchError,
        RunFailedError,
        StockSessionWarning,
        UnknownOutputError,
        ordered_options,
        stock_options,
        stock_session,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "InputMismatchError", "OnnxruntimeExport", "PlannedSession", "RunFailedError", "RunMemory",
    "StatedInput", "StockMemory", "StockSessionWarning", "UnknownOutputError", "drawn_feeds",
    "export_onnxruntime", "onnxruntime_problem", "ordered_options", "stock_memory",
    "stock_options", "stock_session",
]  # fmt: skip
