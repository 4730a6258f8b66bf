"""ONNX: the format is known in this package and nowhere else."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.importers.onnx.reader import read_onnx
else:
    __getattr__, __dir__ = lazily(__name__, {"reader": "read_onnx"})

__all__ = ["read_onnx"]
