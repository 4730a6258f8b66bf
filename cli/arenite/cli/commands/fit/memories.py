"""What `arenite fit` shows of a program over several memories."""

from typing import Any

from rich.console import RenderableType

from arenite.cli.render.memories import memories_as_json, memory_rows, spread_as_json, spread_row
from arenite.pipeline.fitting import Fit
from arenite.pipeline.text import both, percent


def whole(fit: Fit) -> str:
    """Return what the program that runs whole takes, and how it fares over several memories."""
    size = both(fit.whole.height)
    if fit.spread_out is None:
        return size
    slowdown = _slowdown_of_whole(fit)
    if slowdown is None:
        return f"{size}; these memories have no room for that"
    return f"{size}, over these memories {percent(slowdown)} more time, predicted"


def _slowdown_of_whole(fit: Fit) -> float | None:
    """Return the predicted time of the whole program over several memories, over one, less 1."""
    if fit.spread_out is None or fit.spread_out.whole_s is None:
        return None
    seconds = fit.whole.seconds
    return fit.spread_out.whole_s / seconds - 1 if seconds else 0.0


def rows(fit: Fit) -> list[tuple[str, RenderableType]]:
    """Return a row for each memory, and one of what reading and writing costs."""
    if fit.spread_out is None:
        return []
    found = memory_rows(fit.banded.derivation.problem, fit.banded.plan)
    return [*found, spread_row(fit.spread_out.spread)] if found else []


def as_json(fit: Fit) -> dict[str, Any]:
    """Return where it lies and what that costs, for programs."""
    if fit.spread_out is None:
        return {}
    return {
        "memories": memories_as_json(fit.banded.derivation.problem, fit.banded.plan),
        "spread": spread_as_json(fit.spread_out.spread),
        "predicted_slowdown_whole": _slowdown_of_whole(fit),
    }
