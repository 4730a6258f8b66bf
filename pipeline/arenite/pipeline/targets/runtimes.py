"""Runtimes that decide order, alignment and sharing: only offsets are ours to plan."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from arenite.pipeline.base.reading import Reading
from arenite.planner import AliasKind, PlanFile, Problem, Source, model_format
from arenite.planner.files import model_digest

_FORMATS = {"onnx": "ONNX", "tflite": "TFLite"}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A target whose runtime decides all but the offsets.

    Attributes:
        name: As on the command line.
        summary: The runtime's own name.
        takes: The format of its models, as `model_format` names it.
        problem: Returns the records of the runtime.
        open_fields: Fields of a `Reading` that the user may still decide.
    """

    name: str
    summary: str
    takes: str
    problem: Callable[[Reading, Path], Problem]
    open_fields: frozenset[str] = frozenset()
    shares: ClassVar[tuple[AliasKind, ...]] = ()

    def why_unsupported(self, path: Path) -> str | None:
        """Return why the runtime takes no such file."""
        if model_format(path) == self.takes:
            return None
        return f"{self.summary} runs {_FORMATS[self.takes]} models only"

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records of the runtime, to be placed."""
        problem = self.problem(reading, path).with_capacity(capacity)
        return Source(path.name, model_digest(path), None, problem)

    def reread(self, reading: Reading, path: Path, _plan_file: PlanFile) -> Source:
        """Return the records again; the runtime decides all but dimensions and shapes."""
        return self.read(reading, path, None)


def _tflm(_reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import tflm_problem

    return tflm_problem(path)


def _litert(_reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import litert_problem

    return litert_problem(path)


def _onnxruntime(reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import onnxruntime_problem

    return onnxruntime_problem(
        path, dims=reading.dims, shapes=reading.shapes, values=reading.values
    )


RUNTIMES = (
    Foreign("tflm", "TensorFlow Lite Micro", "tflite", _tflm),
    Foreign("litert", "LiteRT", "tflite", _litert),
    Foreign(
        "onnxruntime",
        "ONNX Runtime",
        "onnx",
        _onnxruntime,
        frozenset({"dims", "shapes", "values"}),
    ),
)
"""The head of TFLM's arena, LiteRT's arena, the tensors that ONNX Runtime's arena holds."""
