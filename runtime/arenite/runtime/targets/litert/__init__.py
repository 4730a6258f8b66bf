"""TFLite and LiteRT: the stock interpreter, with every arena tensor where we want it."""

from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.litert.interpreter import PlannedInterpreter
from arenite.runtime.targets.litert.probe import litert_problem
from arenite.runtime.targets.litert.stock import FixedShapeError, StockPlacementWarning

__all__ = [
    "FixedShapeError",
    "PlannedInterpreter",
    "StockPlacementWarning",
    "UnexpectedRuntimeError",
    "litert_problem",
]
