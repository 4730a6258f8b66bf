"""TensorFlow Lite Micro."""

from pathlib import Path
from typing import ClassVar

from arenite.cli.targets.reading import Reading
from arenite.planner.files import model_digest
from arenite.planner.importers import model_format
from arenite.planner.planfile import PlanFile
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.source import Source


class Tflm:
    """The head of the interpreter's arena; it fixes order, alignment and sharing."""

    name: ClassVar[str] = "tflm"
    summary: ClassVar[str] = "TensorFlow Lite Micro"
    open_fields: ClassVar[frozenset[str]] = frozenset()
    shares: ClassVar[tuple[AliasKind, ...]] = ()

    def why_unsupported(self, path: Path) -> str | None:
        """Return why the interpreter takes no such file."""
        return None if model_format(path) == "tflite" else "it runs TFLite models alone"

    def read(self, _reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records of the interpreter."""
        from arenite.runtime.targets.tflm.records import tflm_problem

        digest = model_digest(path)
        return Source(path.name, digest, None, tflm_problem(path).with_capacity(capacity))

    def reread(self, reading: Reading, path: Path, _plan_file: PlanFile) -> Source:
        """Return the same: the interpreter decides all."""
        return self.read(reading, path, None)
