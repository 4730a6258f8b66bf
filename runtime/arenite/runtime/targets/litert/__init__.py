"""TFLite and LiteRT: the stock interpreter, with every arena tensor where we want it."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.targets.litert.interpreter import (
        PlannedInterpreter,
        SharedBytes,
        arena_of,
    )
    from arenite.runtime.targets.litert.probe import RULES, litert_problem, probe_arena
    from arenite.runtime.targets.litert.stock import (
        FixedShapeError,
        StockPlacementWarning,
        load_interpreter,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "RULES", "FixedShapeError", "PlannedInterpreter", "SharedBytes", "StockPlacementWarning",
    "arena_of", "litert_problem", "load_interpreter", "probe_arena",
]  # fmt: skip
