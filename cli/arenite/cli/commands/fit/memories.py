"""What `arenite fit` shows of a program over several memories."""

from typing import Any

from rich.console import RenderableType

from arenite.cli.render.facts import memories_as_json, memory_rows, spread_as_json, spread_row
from arenite.pipeline.base import both, percent
from arenite.planner import Candidate
from arenite.strategies import OverMemories


def whole(fit: Candidate) -> str:
    """Return what the program that runs whole takes, and how it fares over several memories."""
    size = both(fit.whole.height)
    if fit.note(OverMemories) is None:
        return size
    slowdown = _slowdown_of_whole(fit)
    if slowdown is None:
        return f"{size}; these memories have no room for that"
    return f"{size}, over these memories {percent(slowdown)} more time, predicted"


def _slowdown_of_whole(fit: Candidate) -> float | None:
    """Return the predicted time of the whole program over several memories, over one, less 1."""
    over = fit.note(OverMemories)
    if over is None or over.whole_s is None:
        return None
    seconds = fit.whole.seconds
    return over.whole_s / seconds - 1 if seconds else 0.0


def rows(fit: Candidate) -> list[tuple[str, RenderableType]]:
    """Return a row for each memory, and one of what reading and writing costs."""
    over = fit.note(OverMemories)
    if over is None:
        return []
    found = memory_rows(fit.problem, fit.plan)
    return [*found, spread_row(over.spread)] if found else []


def as_json(fit: Candidate) -> dict[str, Any]:
    """Return where it lies and what that costs, for programs."""
    over = fit.note(OverMemories)
    if over is None:
        return {}
    return {
        "memories": memories_as_json(fit.problem, fit.plan),
        "spread": spread_as_json(over.spread),
        "predicted_slowdown_whole": _slowdown_of_whole(fit),
    }
