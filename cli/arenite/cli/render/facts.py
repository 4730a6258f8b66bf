"""Facts of plans, programs and weights as rows for people and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from arenite.pipeline.base import (
    both,
    dimensions_as_json,
    distance,
    grouped,
    percent,
    plural,
    printable,
    sizes_text,
    touched_along,
)
from arenite.pipeline.targets import Compiled
from arenite.planner import Plan, Policy, Problem, Strategy
from arenite.planner.sizes import Dimension, highest_sizes
from arenite.runtime import SessionMemory, Tuned
from arenite.runtime.rewrites import weight_bytes
from arenite.strategies import Spread


def arena_row(plan: Plan) -> tuple[str, str]:
    """Return the height of a plan and its distance from the bound as a row of facts."""
    return "arena", f"{both(plan.height)}, {distance(plan)}"


def plan_as_json(plan: Plan) -> dict[str, object]:
    """Return the height of a plan, its proof, and what made it."""
    return {
        "strategy": plan.strategy,
        "lower_bound": plan.lower_bound,
        "height": plan.height,
        "optimal": plan.optimal,
    }


def held_as_json(held: SessionMemory) -> dict[str, int]:
    """Return the bytes of each part of a session, and their total."""
    return {**asdict(held), "total": held.total}


def held_row(held: SessionMemory) -> tuple[str, str]:
    """Return the bytes that stay beside the arena as a row of facts."""
    beside = held.total - held.memories
    what = "beside the arena and the 128 B behind it: weights, kernels and the program"
    return "resident", f"{both(beside)} {what}"


def tuned_rows(tuned: Tuned | None) -> list[tuple[str, str]]:
    """Return a row of facts, none for a program that is tuned on no processor."""
    if tuned is None:
        return []
    taken = (
        "this one" if tuned.is_here else "not this one; the kernels come from the built-in table"
    )
    return [("tuned on", f"{tuned.processor}, {taken}")]


def tuned_as_json(tuned: Tuned | None) -> dict[str, object] | None:
    """Return the processor and whether its kernels were taken."""
    return None if tuned is None else {"processor": tuned.processor, "taken": tuned.is_here}


def weights_as_json(compiled: Compiled) -> dict[str, int]:
    """Return the bytes that stay, are streamed and in the largest window, and how many."""
    streaming = compiled.streaming
    if streaming is None:
        total = weight_bytes(compiled.program)
        return {"resident": total, "streamed": 0, "window": 0, "num_windows": 0, "at_once": 0}
    return {
        "resident": streaming.resident,
        "streamed": streaming.streamed,
        "window": streaming.window,
        "num_windows": streaming.num_tiles,
        "at_once": streaming.at_once if streaming.num_tiles else 0,
    }


def weights_rows(compiled: Compiled) -> list[tuple[str, str]]:
    """Return the same as rows of facts; none if nothing is streamed."""
    streaming = compiled.streaming
    if streaming is None:
        return []
    if not streaming.num_tiles:
        return [("weights", f"{both(streaming.resident)}, all resident: they fit the budget")]
    tiles = plural(streaming.num_tiles, "tile")
    how = (
        "two at a time, filled beside the computation"
        if streaming.at_once > 1
        else "one at a time"
    )
    return [
        ("weights", f"{both(streaming.resident)} resident, {both(streaming.streamed)} streamed"),
        ("window", f"{both(streaming.window)} in the arena, {tiles}, {how}"),
    ]


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


def range_rows(
    problem: Problem, plan: Plan, dimensions: Sequence[Dimension]
) -> list[tuple[str, RenderableType]]:
    """Return the dimensions, and what smaller sizes touch; no rows for a single size."""
    if not dimensions:
        return []
    return [
        ("sizes", ", ".join(map(str, dimensions))),
        *(
            (
                "touched",
                f"{both(each.resident)} in pages of 4 KiB at {sizes_text(each.sizes)}, below byte "
                f"{grouped(each.size)}",
            )
            for each in touched_along(problem, plan, dimensions)
        ),
    ]


def range_as_json(
    problem: Problem, plan: Plan, dimensions: Sequence[Dimension]
) -> dict[str, object]:
    """Return the dimensions, and what smaller sizes touch; empty lists for a single size."""
    touched = touched_along(problem, plan, dimensions)
    return {
        "dimensions": dimensions_as_json(dimensions),
        "touched": [each.as_json() for each in touched],
    }


def subrange_rows(parts: Iterable[tuple[Sequence[Dimension], int]]) -> list[tuple[str, str]]:
    """Return the lower parts of a range that have plans of their own, given with their heights."""
    return [
        ("up to", f"{sizes_text(highest_sizes(dimensions))}: a plan of its own, {both(height)}")
        for dimensions, height in parts
    ]


def subranges_as_json(parts: Iterable[tuple[Sequence[Dimension], int]]) -> list[dict[str, object]]:
    """Return the highest sizes of each, and its height."""
    return [
        {"highest": highest_sizes(dimensions), "height": height} for dimensions, height in parts
    ]


def memories_as_json(problem: Problem, plan: Plan) -> list[dict[str, object]]:
    """Return the memories with the records in each."""
    return [
        {"name": memory.name, "capacity": memory.capacity, "height": height}
        for memory, height in zip(problem.memories, plan.heights, strict=True)
    ]


def spread_row(spread: Spread) -> tuple[str, RenderableType]:
    """Return the cost of reads and writes, and its distance from the least."""
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
    """Return the cost of reads and writes."""
    return {"cost": spread.cost, "least_cost": spread.least_cost}


def facts(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Return labels and values, one a line; texts may come from a file."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(cell: RenderableType) -> RenderableType:
    return printable(cell) if isinstance(cell, str) else cell


def listing(columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Return a table with a header; columns that end in a `>` hold numbers.

    Nothing is cut off: text too long for the terminal is folded. Texts may come from a file.
    """
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in columns:
        numbers = column.endswith(">")
        table.add_column(
            column.removesuffix(">"),
            justify="right" if numbers else "left",
            no_wrap=numbers,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


_SOURCE_WIDTH = 58
"""Columns of a source: longer ones continue on the next line."""


def policies_table(policies: Iterable[Policy]) -> Table:
    """Return the table of policies, narrow enough for most terminals."""
    return _sources(
        ("policy", "decides", "source"),
        ((policy.name, policy.decides, policy.source) for policy in policies),
    )


def strategies_table(strategies: Iterable[Strategy]) -> Table:
    """Return the table of strategies, narrow enough for most terminals."""
    return _sources(
        ("name", "kind", "source"),
        ((strategy.name, strategy.kind.value, strategy.source) for strategy in strategies),
    )


def _sources(heading: Sequence[str], rows: Iterable[tuple[str, str, str]]) -> Table:
    table = listing(
        heading, ((Text(name, "bold", no_wrap=True), what, source) for name, what, source in rows)
    )
    table.columns[-1].max_width = _SOURCE_WIDTH
    table.columns[-1].overflow = "fold"
    table.columns[-1].no_wrap = False
    return table


def name(text: str, style: str = "") -> Text:
    """Return a name from a file as a cell or part of a line."""
    return Text(printable(text), style, overflow="fold")
