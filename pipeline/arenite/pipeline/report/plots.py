"""Shared parts of the figures of all pages: axes of bytes, the line of the load."""

from collections.abc import Sequence

from bokeh.models import (
    AdaptiveTicker,
    BoxZoomTool,
    CustomJSTickFormatter,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from arenite.pipeline.report.row_map import Numbers

CROWDED = 150  # steps beyond which outlines would hide the rectangles
MARGIN = 1.05  # above the highest byte
_TICKS = """
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let value = tick, unit = 0;
    while (Math.abs(value) >= 1024 && unit < 4) { value /= 1024; unit += 1; }
    return `${+value.toPrecision(4)} ${units[unit]}`;
"""


def draw_load(
    plot: figure, times: Sequence[int] | Numbers, loads: Sequence[int] | Numbers, *, crowded: bool
) -> None:
    """Draw the line of the live bytes over the steps."""
    plot.line(times, loads, name="load", line_width=0.75 if crowded else 1.5)


def byte_ticks() -> CustomJSTickFormatter:
    """Return a function that formats bytes on an axis."""
    return CustomJSTickFormatter(code=_TICKS)


def empty_plot(height: int, steps: Range1d, top: float, name: str) -> figure:
    """Return an empty figure; its colours are the page's, which knows light from dark."""
    plot = figure(
        name=name, height=height, sizing_mode="stretch_width", min_border_left=76,
        x_range=steps, y_range=Range1d(start=0, end=top), toolbar_location="above",
        tools=[PanTool(), BoxZoomTool(), WheelZoomTool(), ResetTool(), SaveTool()],
        active_drag=None, background_fill_color=None, border_fill_color=None,
        outline_line_color=None, output_backend="canvas",
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.xgrid.visible = False
    plot.yaxis.ticker = AdaptiveTicker(
        base=16, mantissas=[1, 2, 4, 8], desired_num_ticks=max(3, height // 70)
    )
    plot.yaxis.formatter = byte_ticks()
    plot.xaxis.ticker = AdaptiveTicker(min_interval=1)
    return plot
