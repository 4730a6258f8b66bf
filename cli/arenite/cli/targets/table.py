"""Whose records are planned: the graph as written, or what a runtime really places.

Ours takes any order. Another fixes its own, and alignment and sharing with it, so a model is
read for it as a whole.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from arenite.planner.files import model_digest
from arenite.planner.importers import Shapes
from arenite.planner.ordering import FindOrder
from arenite.planner.problem import Problem
from arenite.planner.source import Source
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.streaming import WeightBudget

GENERIC = "generic"
ARENITE = "arenite"


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

TARGETS = (GENERIC, ARENITE, *_FIXED, *_BOUND)

OPEN_FIELDS: Mapping[str, tuple[str, ...]] = {
    ARENITE: ("dims", "shapes", "order_name", "weight_budget"),
    **dict.fromkeys(_BOUND, ("dims", "shapes")),
}
"""What of a `Reading` the user of a runtime may still decide: nothing if it is not here."""


def read_for_runtime(
    target: str,
    path: Path,
    dims: Mapping[str, int],
    shapes: Shapes,
    order: FindOrder | None = None,
    weight_budget: WeightBudget | None = None,
) -> Source:
    """Return the records that a runtime places for a model.

    Args:
        target: The runtime.
        path: The model.
        dims: Values of free dimensions, where they are open.
        shapes: Shapes of graph inputs, where they are open.
        order: What orders the steps, where that is open; by default the model.
        weight_budget: Weights that may be resident in a run, where that is open.

    Raises:
        ModelError: The model is damaged, of another format, or refused by the runtime.
        MissingDependencyError: The runtime's package is absent.
    """
    if target == ARENITE:
        return compile_model(
            path, dims=dims, shapes=shapes, order=order, weight_budget=weight_budget
        ).source
    digest = model_digest(path)
    problem = _BOUND[target](path, dims, shapes) if target in _BOUND else _FIXED[target](path)
    return Source(path.name, digest, None, problem)
