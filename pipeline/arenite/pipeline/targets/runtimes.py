"""Runtimes that decide order, alignment and sharing: only offsets are ours to plan."""

from pathlib import Path
from typing import ClassVar, Protocol

from arenite.pipeline.base.reading import Reading
from arenite.planner import AliasKind, PlanFile, Problem, Source, model_format
from arenite.planner.files import model_digest

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


class Tflm(Foreign):
    """The head of the interpreter's arena."""

    name: ClassVar[str] = "tflm"
    summary: ClassVar[str] = "TensorFlow Lite Micro"
    takes: ClassVar[str] = "tflite"

    def problem(self, _reading: Reading, path: Path) -> Problem:
        from arenite.runtime.targets import tflm_problem

        return tflm_problem(path)


class Litert(Foreign):
    """The interpreter's arena."""

    name: ClassVar[str] = "litert"
    summary: ClassVar[str] = "LiteRT"
    takes: ClassVar[str] = "tflite"

    def problem(self, _reading: Reading, path: Path) -> Problem:
        from arenite.runtime.targets import litert_problem

        return litert_problem(path)


class Onnxruntime(Foreign):
    """The tensors that the runtime's arena holds."""

    name: ClassVar[str] = "onnxruntime"
    summary: ClassVar[str] = "ONNX Runtime"
    takes: ClassVar[str] = "onnx"
    open_fields: ClassVar[frozenset[str]] = frozenset({"dims", "shapes", "values"})

    def problem(self, reading: Reading, path: Path) -> Problem:
        from arenite.runtime.targets import onnxruntime_problem

        return onnxruntime_problem(
            path, dims=reading.dims, shapes=reading.shapes, values=reading.values
        )
