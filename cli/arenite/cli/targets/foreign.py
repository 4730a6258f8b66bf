"""A runtime that fixes order, alignment and sharing: only its records can be placed anew."""

from pathlib import Path
from typing import ClassVar, Protocol

from arenite.cli.targets.reading import Reading
from arenite.planner.files import model_digest
from arenite.planner.importers import model_format
from arenite.planner.planfile import PlanFile
from arenite.planner.problem import Problem
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.source import Source

_WRITTEN = {"onnx": "ONNX", "tflite": "TFLite"}


class Foreign(Protocol):
    """A target whose runtime decides all but the offsets.

    Attributes:
        takes: The format of its models, as `model_format` names it.
    """

    takes: ClassVar[str]
    open_fields: ClassVar[frozenset[str]] = frozenset()
    shares: ClassVar[tuple[AliasKind, ...]] = ()

    def problem(self, reading: Reading, path: Path) -> Problem:
        """Return the records of the runtime."""
        ...

    def why_unsupported(self, path: Path) -> str | None:
        """Return why the runtime takes no such file."""
        if model_format(path) == self.takes:
            return None
        return f"it runs {_WRITTEN[self.takes]} models alone"

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records of the runtime, to be placed."""
        problem = self.problem(reading, path).with_capacity(capacity)
        return Source(path.name, model_digest(path), None, problem)

    def reread(self, reading: Reading, path: Path, _plan_file: PlanFile) -> Source:
        """Return the same for what is stated: the runtime decides all else."""
        return self.read(reading, path, None)
