"""ONNX Runtime."""

from pathlib import Path
from typing import ClassVar

from arenite.cli.targets.foreign import Foreign
from arenite.cli.targets.reading import Reading
from arenite.planner.problem import Problem


class Onnxruntime(Foreign):
    """The tensors that the runtime's arena holds."""

    name: ClassVar[str] = "onnxruntime"
    summary: ClassVar[str] = "ONNX Runtime"
    takes: ClassVar[str] = "onnx"
    open_fields: ClassVar[frozenset[str]] = frozenset({"dims", "shapes", "values"})

    def problem(self, reading: Reading, path: Path) -> Problem:
        """Return the records of the runtime."""
        from arenite.runtime.targets.onnxruntime import onnxruntime_problem

        return onnxruntime_problem(
            path, dims=reading.dims, shapes=reading.shapes, values=reading.values
        )
