"""The load over the steps as bars: the working set below, carried tensors above it."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from arenite.cli.render.axes import TimeScale, framed
from arenite.planner.placement import LoadSpan
from arenite.planner.programs import StepLoad

NUM_ROWS = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_CARRIED = "░"
_WORKING_STYLE = "#4e79a7"
_CARRIED_STYLE = "#f28e2b"


def draw_steps(steps: Sequence[StepLoad], width: int, *, colour: bool = False) -> RenderableType:
    """Return the chart of a graph's steps, each column showing its highest step.

    Args:
        width: Columns, the axis included.
        colour: Whether colours reach the reader.
    """
    if not any(step.load for step in steps):
        return Text("Nothing is live.")
    scale = TimeScale.fit(len(steps), width)
    bars = []
    for column in range(scale.columns):
        first = column * scale.num_steps // scale.columns
        end = -(-(column + 1) * scale.num_steps // scale.columns)
        highest = max(steps[first:end], key=lambda step: step.load)
        bars.append((highest.working_set, highest.load))
    legend = Text.assemble(
        ("█", _WORKING_STYLE), " working set   ",
        ("█" if colour else _CARRIED, _CARRIED_STYLE), " carried",
    )  # fmt: skip
    return Group(_chart(bars, scale, colour), legend)


def draw_spans(spans: Sequence[LoadSpan], width: int) -> RenderableType:
    """Return the chart of records without a graph.

    Args:
        spans: In order of time.
        width: Columns, the axis included.
    """
    if not spans:
        return Text("Nothing is live.")
    scale = TimeScale.fit(spans[-1].end, width)
    highest = [0] * scale.columns
    for span in spans:
        for column in range(scale.first_column(span.start), scale.end_column(span.end)):
            highest[column] = max(highest[column], span.load)
    return _chart([(load, load) for load in highest], scale, colour=False)


def _chart(bars: Sequence[tuple[int, int]], scale: TimeScale, colour: bool) -> RenderableType:
    peak = max(load for _, load in bars)
    eighths = 8 * NUM_ROWS
    rows: list[Text] = []
    for row in range(NUM_ROWS - 1, -1, -1):
        text = Text()
        for working, load in bars:
            working_level, load_level = (
                min(8, max(0, -(-part * eighths // peak) - 8 * row)) for part in (working, load)
            )
            text.append(*_cell(working_level, load_level, colour))
        rows.append(text)
    return framed(rows, peak, scale)


def _cell(working: int, load: int, colour: bool) -> tuple[str, str]:
    """Return the character and style of a cell filled so many eighths."""
    if not colour:
        shaded = load > working and working < 4
        return (_CARRIED if load >= 4 else " ") if shaded else _EIGHTHS[load], ""
    if load == 8:
        return _EIGHTHS[working], f"{_WORKING_STYLE} on {_CARRIED_STYLE}"
    return _EIGHTHS[load], _CARRIED_STYLE if load > working else _WORKING_STYLE
