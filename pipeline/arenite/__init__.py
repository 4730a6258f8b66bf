"""Plan, fit, build and run neural networks in one arena of memory.

    >>> import arenite
    >>> plan = arenite.plan("model.onnx")
    >>> plan.height, plan.lower_bound
    >>> arenite.build("model.onnx", "model.arena")
    >>> with arenite.Session("model.arena") as session:
    ...     outputs = session.run({"image": image})

The names of `__all__` are public and stable; they load what they use when they are first named.
"""

TYPE_CHECKING = False  # as type checkers know it


def _folders() -> list[str]:
    """Return the other folders of the package: in a checkout each component has its own.

    `pkgutil` would find them too, but its import takes longer than anything else before the
    command catches Ctrl-C, and so does that of `typing`.
    """
    import os
    import sys

    found = dict.fromkeys(f"{each or os.curdir}{os.sep}{__name__}" for each in sys.path)
    return [each for each in found if each not in __path__ and os.access(each, os.X_OK)]


__path__ += _folders()
if TYPE_CHECKING:
    from arenite.pipeline import (
        Built,
        Comparison,
        FittedFrontier,
        FittedModel,
        Generated,
        Generator,
        Piece,
        PlannedModel,
        PlannedSystem,
        Sampling,
        Session,
        StreamedModel,
        System,
        build,
        compare,
        fit,
        fit_frontier,
        plan,
        plan_system,
        stream,
    )
    from arenite.planner import AreniteError

__all__ = [
    "AreniteError", "Built", "Comparison", "FittedFrontier", "FittedModel", "Generated",
    "Generator", "Piece", "PlannedModel", "PlannedSystem", "Sampling", "Session", "StreamedModel",
    "System", "build", "compare", "fit", "fit_frontier", "plan", "plan_system", "stream",
]  # fmt: skip


def _version() -> str:
    """Return the version, by the name of the folder of metadata.

    `importlib.metadata` takes longer to import than a program to open.
    """
    import os
    import sys

    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):  # noqa: PTH208  # nothing that takes time to import
            if name.startswith("arenite-") and name.endswith(".dist-info"):
                return name.removeprefix("arenite-").removesuffix(".dist-info")
    from importlib import metadata

    return metadata.version("arenite")


def __getattr__(name: str) -> object:
    found: object
    if name == "__version__":
        found = _version()
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
