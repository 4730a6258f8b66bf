"""Drawings of characters: axes, and a grid of pixels of two halves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.text import Text

from arenite.planner import Plan, Problem
from arenite.planner.units import format_size

LABEL_WIDTH = 11
"""Columns left of the drawing: a byte label, a space and the axis."""

_ROWS_PER_TICK = 5
_COLUMNS_PER_TICK = 6
_QUIET = "dim"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Which steps a column stands for.

    Attributes:
        num_steps: Steps in all, at least 1.
        columns: Columns in all; a multiple of the steps where there are fewer of those.
    """

    num_steps: int
    columns: int

    @classmethod
    def fit(cls, num_steps: int, width: int) -> "TimeScale":
        """Return the widest scale that fits `width` columns, the axis included."""
        room = width - LABEL_WIDTH
        return cls(num_steps, room // num_steps * num_steps if num_steps <= room else room)

    def first_column(self, step: int) -> int:
        return step * self.columns // self.num_steps

    def end_column(self, step: int) -> int:
        """Return the column after the last that lies, if only in part, before a step."""
        return -(-step * self.columns // self.num_steps)


def framed(rows: Sequence[Text], top: int, scale: TimeScale) -> Text:
    """Return the rows with labelled axes.

    Args:
        rows: Top first, each of `scale.columns` cells.
        top: Bytes at the upper edge.
        scale: The meaning of the columns.
    """
    drawing = Text(no_wrap=True)
    for index, row in enumerate(rows):
        if index % _ROWS_PER_TICK == 0:
            label, axis = format_size(top * (len(rows) - index) // len(rows)), "┤"
        else:
            label, axis = "", "│"
        drawing.append(f"{label:>{LABEL_WIDTH - 2}} {axis}", _QUIET)
        drawing.append_text(row).append("\n")
    line, labels = _time_axis(scale)
    drawing.append(f"{'0':>{LABEL_WIDTH - 2}} └{line}\n", _QUIET)
    drawing.append(f"{'step':>{LABEL_WIDTH - 2}}  {labels}".rstrip(), _QUIET)
    return drawing


def _time_axis(scale: TimeScale) -> tuple[str, str]:
    line = ["─"] * scale.columns
    labels = ""
    for step in range(0, scale.num_steps, _ticks_every(scale)):
        column = scale.first_column(step)
        line[column] = "┬"
        if column + len(str(step)) <= scale.columns:
            labels = f"{labels:<{column}}{step}"
    return "".join(line), labels


def _ticks_every(scale: TimeScale) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... steps that keeps the labels apart."""
    magnitude = 1
    while True:
        for factor in (1, 2, 5):
            every = factor * magnitude
            if scale.first_column(every) >= _COLUMNS_PER_TICK or every >= scale.num_steps:
                return every
        magnitude *= 10


Grid: TypeAlias = list[list[int | None]]
"""By row from the top, then by column: the index of a record, None where most is free."""


def rasterise(problem: Problem, plan: Plan, scale: TimeScale, rows: int) -> Grid:
    """Return the grid of a plan whose height is above 0.

    A cell of which less than half is used is free, whatever lies in the rest.

    Cost: time O(n + cells touched by each record), memory O(cells), n counting the stairs.
    """
    # Areas are counted in units of 1/columns step by 1/rows byte, so that all are whole.
    cell_time, cell_bytes = scale.num_steps, plan.height
    used = [[0] * scale.columns for _ in range(rows)]
    largest = [[0] * scale.columns for _ in range(rows)]
    grid: Grid = [[None] * scale.columns for _ in range(rows)]
    for index, (record, offset) in enumerate(zip(problem.records, plan.offsets, strict=True)):
        areas: dict[tuple[int, int], int] = {}
        for stair in record.stairs:
            first = offset + stair.offset
            across = _overlaps(stair.start * scale.columns, stair.end * scale.columns, cell_time)
            for row, height in _overlaps(first * rows, (first + stair.size) * rows, cell_bytes):
                for column, width in across:
                    cell = rows - 1 - row, column
                    areas[cell] = areas.get(cell, 0) + width * height
        for (row, column), area in areas.items():
            used[row][column] += area
            if area > largest[row][column]:
                largest[row][column] = area
                grid[row][column] = index
    for row in range(rows):
        for column in range(scale.columns):
            if 2 * used[row][column] < cell_time * cell_bytes:
                grid[row][column] = None
    return grid


def _overlaps(start: int, end: int, cell: int) -> list[tuple[int, int]]:
    """Return each cell that meets `[start, end)` and by how much."""
    return [
        (index, min(end, (index + 1) * cell) - max(start, index * cell))
        for index in range(start // cell, -(-end // cell))
    ]


def colour_apart(grid: Grid, ranking: Sequence[int], num_colours: int) -> dict[int, int]:
    """Return a colour for each record such that records that touch in the grid differ.

    Where a record touches as many others as there are colours, it takes the one used
    least.

    Args:
        grid: Names by step and record, where they touch.
        ranking: Records, the first to choose first.
        num_colours: How many there are; from 8 on, touching records hardly ever agree.
    """
    touching = _touching(grid)
    colours: dict[int, int] = {}
    times_used = [0] * num_colours
    for record in ranking:
        taken = {colours[other] for other in touching.get(record, ()) if other in colours}
        colour = min(
            range(num_colours), key=lambda colour: (colour in taken, times_used[colour], colour)
        )
        colours[record] = colour
        times_used[colour] += 1
    return colours


def _touching(grid: Grid) -> dict[int, set[int]]:
    touching: dict[int, set[int]] = {}
    nothing: Sequence[int | None] = [None] * len(grid[0])
    for row, above in zip(grid, [nothing, *grid], strict=False):
        for column, cell in enumerate(row):
            for other in (above[column], row[column - 1] if column else None):
                if cell is not None and other is not None and cell != other:
                    touching.setdefault(cell, set()).add(other)
                    touching.setdefault(other, set()).add(cell)
    return touching
