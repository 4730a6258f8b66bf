"""TensorFlow Lite Micro."""

from pathlib import Path
from typing import ClassVar

from arenite.cli.targets.foreign import Foreign
from arenite.cli.targets.reading import Reading
from arenite.planner.problem import Problem


class Tflm(Foreign):
    """The head of the interpreter's arena."""

    name: ClassVar[str] = "tflm"
    summary: ClassVar[str] = "TensorFlow Lite Micro"
    takes: ClassVar[str] = "tflite"

    def problem(self, _reading: Reading, path: Path) -> Problem:
        """Return the records of the interpreter."""
        from arenite.runtime.targets.tflm.records import tflm_problem

        return tflm_problem(path)
