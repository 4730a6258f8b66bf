"""Rewrite a model into a program that the native core runs.

The lowered program is planned: the plan and the run have the same steps.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.lowering.errors import UnsupportedOperatorsError
    from arenite.runtime.lowering.onnx.model import lower_onnx
    from arenite.runtime.lowering.tflite.model import lower_tflite
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = ["UnsupportedOperatorsError", "lower_onnx", "lower_tflite"]
