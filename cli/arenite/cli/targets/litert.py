"""LiteRT, as its Python package ships it."""

from pathlib import Path
from typing import ClassVar

from arenite.cli.targets.foreign import Foreign
from arenite.cli.targets.reading import Reading
from arenite.planner.problem import Problem


class Litert(Foreign):
    """The interpreter's arena."""

    name: ClassVar[str] = "litert"
    summary: ClassVar[str] = "LiteRT"
    takes: ClassVar[str] = "tflite"

    def problem(self, _reading: Reading, path: Path) -> Problem:
        """Return the records of the interpreter."""
        from arenite.runtime.targets.litert import litert_problem

        return litert_problem(path)
