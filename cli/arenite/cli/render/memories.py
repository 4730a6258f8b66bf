"""Several memories, in words and as JSON."""

from collections import Counter

from rich.console import RenderableType

from arenite.pipeline.base.text import both, percent, plural
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.strategies.memories import Spread


def memory_rows(problem: Problem, plan: Plan) -> list[tuple[str, RenderableType]]:
    """Return a row for each memory, if there are several."""
    if len(problem.memories) < 2:
        return []
    held = Counter(record.memory for record in problem.records)
    rows: list[tuple[str, RenderableType]] = []
    for memory, height in zip(problem.memories, plan.heights, strict=True):
        limit = "" if memory.capacity is None else f" of {both(memory.capacity)}"
        rows.append((memory.name, f"{both(height)}{limit}: {plural(held[memory.name], 'record')}"))
    return rows


def memories_as_json(problem: Problem, plan: Plan) -> list[dict[str, object]]:
    """Return the memories with what is laid over each."""
    return [
        {"name": memory.name, "capacity": memory.capacity, "height": height}
        for memory, height in zip(problem.memories, plan.heights, strict=True)
    ]


def spread_row(spread: Spread) -> tuple[str, RenderableType]:
    """Return what reading and writing costs, and how far that is from the least."""
    if spread.cost <= spread.least_cost:
        return "cost", f"{spread.cost:,.0f} for all reads and writes: the least there is"
    if not spread.least_cost:
        return "cost", f"{spread.cost:,.0f} for all reads and writes"
    above = spread.cost / spread.least_cost - 1
    return (
        "cost",
        f"{spread.cost:,.0f} for all reads and writes, at most {percent(above)} above the least",
    )


def spread_as_json(spread: Spread) -> dict[str, object]:
    """Return what reading and writing costs."""
    return {"cost": spread.cost, "least_cost": spread.least_cost}
