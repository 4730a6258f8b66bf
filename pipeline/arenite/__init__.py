"""Plan, fit, build and run neural networks in one arena of memory.

    >>> import arenite
    >>> plan = arenite.plan("model.onnx")
    >>> plan.height, plan.lower_bound
    >>> arenite.build("model.onnx", "model.arena")
    >>> with arenite.Session("model.arena") as session:
    ...     outputs = session.run({"image": image})

The names of `__all__` are public and stable; they load what they use when they are first named.
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING

__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from arenite.pipeline import (
        Built,
        Comparison,
        FittedFrontier,
        FittedModel,
        PlannedModel,
        Session,
        build,
        compare,
        fit,
        fit_frontier,
        plan,
    )
    from arenite.planner import AreniteError

__all__ = [
    "AreniteError", "Built", "Comparison", "FittedFrontier", "FittedModel", "PlannedModel",
    "Session", "build", "compare", "fit", "fit_frontier", "plan",
]  # fmt: skip


def __getattr__(name: str) -> object:
    found: object
    if name == "__version__":
        from importlib import metadata

        found = metadata.version("arenite")
    elif name == "AreniteError":
        from arenite.planner import errors

        found = errors.AreniteError
    elif name in __all__:
        from arenite import pipeline

        found = getattr(pipeline, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
