"""The way of a model: read, ordered, placed, fitted into a budget, built, compared.

The public functions load what they use when they are first named.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arenite.pipeline.api import build, compare, fit, fit_frontier, plan
    from arenite.pipeline.comparison.comparing import Comparison
    from arenite.pipeline.making.building import Built
    from arenite.pipeline.making.fitting import FittedFrontier, FittedModel
    from arenite.pipeline.making.planning import PlannedModel
    from arenite.pipeline.session import Session

__all__ = [
    "Built",
    "Comparison",
    "FittedFrontier",
    "FittedModel",
    "PlannedModel",
    "Session",
    "build",
    "compare",
    "fit",
    "fit_frontier",
    "plan",
]

_MODULES = {
    "Built": "making.building",
    "Comparison": "comparison.comparing",
    "FittedFrontier": "making.fitting",
    "FittedModel": "making.fitting",
    "PlannedModel": "making.planning",
    "Session": "session",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'api')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
