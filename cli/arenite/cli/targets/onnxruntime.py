"""ONNX Runtime."""

from pathlib import Path
from typing import ClassVar

from arenite.cli.targets.reading import Reading
from arenite.planner.files import model_digest
from arenite.planner.importers import model_format
from arenite.planner.planfile import PlanFile
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.source import Source


class Onnxruntime:
    """The tensors that the runtime's arena holds; it fixes order, alignment and sharing."""

    name: ClassVar[str] = "onnxruntime"
    summary: ClassVar[str] = "ONNX Runtime"
    open_fields: ClassVar[frozenset[str]] = frozenset({"dims", "shapes", "values"})
    shares: ClassVar[tuple[AliasKind, ...]] = ()

    def why_unsupported(self, path: Path) -> str | None:
        """Return why the runtime takes no such file."""
        return None if model_format(path) == "onnx" else "it runs ONNX models alone"

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records of the runtime."""
        from arenite.runtime.targets.onnxruntime import onnxruntime_problem

        digest = model_digest(path)
        problem = onnxruntime_problem(
            path, dims=reading.dims, shapes=reading.shapes, values=reading.values
        )
        return Source(path.name, digest, None, problem.with_capacity(capacity))

    def reread(self, reading: Reading, path: Path, _plan_file: PlanFile) -> Source:
        """Return the same for these dimensions: the runtime decides all else."""
        return self.read(reading, path, None)
