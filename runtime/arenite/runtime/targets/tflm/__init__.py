"""TensorFlow Lite Micro: plans that an unmodified interpreter obeys, measured in it."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.targets.tflm.export import (
        TflmExport,
        TflmMeasurements,
        c_header,
        comment,
        export_tflm,
    )
    from arenite.runtime.targets.tflm.measure import (
        InterpreterError,
        Measurement,
        learn_scratch,
        measure_arena,
        measure_bytes,
    )
    from arenite.runtime.targets.tflm.records import (
        ALIGNMENT,
        TflmModel,
        read_tflm_model,
        tflm_problem,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ALIGNMENT", "InterpreterError", "Measurement", "TflmExport", "TflmMeasurements", "TflmModel",
    "c_header", "comment", "export_tflm", "learn_scratch", "measure_arena", "measure_bytes",
    "read_tflm_model", "tflm_problem",
]  # fmt: skip
