"""Stock runtimes that obey our plan: TensorFlow Lite Micro, LiteRT, ONNX Runtime."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.targets.litert import (
        PlannedInterpreter,
        StockPlacementWarning,
        litert_problem,
    )
    from arenite.runtime.targets.onnxruntime import (
        OnnxruntimeExport,
        PlannedSession,
        export_onnxruntime,
        onnxruntime_problem,
    )
    from arenite.runtime.targets.onnxruntime.recording import drawn_feeds, stock_memory
    from arenite.runtime.targets.onnxruntime.stock import stock_options, stock_session
    from arenite.runtime.targets.tflm.export import TflmExport, c_header, export_tflm
    from arenite.runtime.targets.tflm.measure import Measurement, measure_arena
    from arenite.runtime.targets.tflm.records import tflm_problem
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Measurement", "OnnxruntimeExport", "PlannedInterpreter", "PlannedSession",
    "StockPlacementWarning", "TflmExport", "c_header", "drawn_feeds", "export_onnxruntime",
    "export_tflm", "litert_problem", "measure_arena", "onnxruntime_problem", "stock_memory",
    "stock_options", "stock_session", "tflm_problem",
]  # fmt: skip
