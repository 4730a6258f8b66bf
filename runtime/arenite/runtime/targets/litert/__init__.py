"""TFLite and LiteRT: the stock interpreter, with every arena tensor where we want it."""

from arenite.runtime.targets.litert.errors import (
    FixedShapeError,
    StockPlacementWarning,
    UnexpectedRuntimeError,
)
from arenite.runtime.targets.litert.interpreter import PlannedInterpreter
from arenite.runtime.targets.litert.probe import litert_problem

__all__ = [
    "FixedShapeError",
    "PlannedInterpreter",
    "StockPlacementWarning",
    "UnexpectedRuntimeError",
    "litert_problem",
]
