"""The frame of a drawing: bytes upwards, steps to the right."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

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
        """Return the column in which a step starts."""
        return step * self.columns // self.num_steps

    def end_column(self, step: int) -> int:
        """Return the column after the last that lies, if only in part, before a step."""
        return -(-step * self.columns // self.num_steps)


def framed(rows: Sequence[Text], top: int, scale: TimeScale) -> Text:
    """Return the rows with labelled axes.

    Args:
        rows: Top first, each of `scale.columns` cells.
        top: Bytes at the upper edge.
        scale: What the columns stand for.
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
