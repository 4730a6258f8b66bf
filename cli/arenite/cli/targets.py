"""Whose records are planned: the graph as written, or what a runtime really places.

A runtime fixes its own order, alignment and sharing, so a model is read for it as a whole.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from arenite.planner.files import model_digest
from arenite.planner.problem import Problem
from arenite.planner.source import Source

GENERIC = "generic"


def _tflm(path: Path) -> Problem:
    from arenite.runtime.targets.tflm.records import tflm_problem

    return tflm_problem(path)


def _litert(path: Path) -> Problem:
    from arenite.runtime.targets.litert import litert_problem

    return litert_problem(path)


RUNTIMES: Mapping[str, Callable[[Path], Problem]] = {"tflm": _tflm, "litert": _litert}
"""For each runtime, what gives the records that it places for a model."""

TARGETS = (GENERIC, *RUNTIMES)


def read_for_runtime(target: str, path: Path) -> Source:
    """Return the records that a runtime places for a model.

    Raises:
        ModelError: The model is damaged, of another format, or refused by the runtime.
        MissingDependencyError: The runtime's package is absent.
    """
    digest = model_digest(path)
    return Source(path.name, digest, None, RUNTIMES[target](path))
