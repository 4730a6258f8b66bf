"""Whose records are planned: the graph as written, or what a runtime really places.

A runtime fixes its own order, alignment and sharing, so a model is read for it as a whole.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from arenite.planner.files import model_digest
from arenite.planner.importers import Shapes
from arenite.planner.problem import Problem
from arenite.planner.source import Source

GENERIC = "generic"


def _tflm(path: Path) -> Problem:
    from arenite.runtime.targets.tflm.records import tflm_problem

    return tflm_problem(path)


def _litert(path: Path) -> Problem:
    from arenite.runtime.targets.litert import litert_problem

    return litert_problem(path)


def _onnxruntime(path: Path, dims: Mapping[str, int], shapes: Shapes) -> Problem:
    from arenite.runtime.targets.onnxruntime import onnxruntime_problem

    return onnxruntime_problem(path, dims=dims, shapes=shapes)


_FIXED: Mapping[str, Callable[[Path], Problem]] = {"tflm": _tflm, "litert": _litert}
_BOUND: Mapping[str, Callable[[Path, Mapping[str, int], Shapes], Problem]] = {
    "onnxruntime": _onnxruntime
}

BINDING_RUNTIMES = tuple(_BOUND)
"""Runtimes whose models may have free dimensions."""

TARGETS = (GENERIC, *_FIXED, *_BOUND)


def read_for_runtime(target: str, path: Path, dims: Mapping[str, int], shapes: Shapes) -> Source:
    """Return the records that a runtime places for a model.

    Args:
        target: The runtime.
        path: The model.
        dims: Values of free dimensions, for one of `BINDING_RUNTIMES`.
        shapes: Shapes of graph inputs, for one of `BINDING_RUNTIMES`.

    Raises:
        ModelError: The model is damaged, of another format, or refused by the runtime.
        MissingDependencyError: The runtime's package is absent.
    """
    digest = model_digest(path)
    problem = _BOUND[target](path, dims, shapes) if target in _BOUND else _FIXED[target](path)
    return Source(path.name, digest, None, problem)
