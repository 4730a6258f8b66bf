"""What the figures of all pages have in common: colours, axes of bytes, the line of the load."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

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

from arenite.cli.render.text import printable
from arenite.planner.problem import UsageRecord, load_spans

# Paul Tol's "light" scheme: told apart by the colour-blind, on white and on black.
PALETTE = (
    "#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#aaaa00",
)  # fmt: skip
OTHER = "#bbbbbb"

CROWDED = 150  # steps beyond which outlines would hide what they surround
MARGIN = 1.05  # above the highest byte
_TICKS = """
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let value = tick, unit = 0;
    while (Math.abs(value) >= 1024 && unit < 4) { value /= 1024; unit += 1; }
    return `${+value.toPrecision(4)} ${units[unit]}`;
"""


@dataclass(frozen=True, slots=True)
class Groups:
    """Names that share a colour, those of the most bytes first.

    Attributes:
        names: Of the groups; what is beyond the palette is in the last.
        colours: One for each name.
        index: The group of each name that was given.
    """

    names: tuple[str, ...]
    colours: tuple[str, ...]
    index: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Self:
        """Group names by what they take."""
        ranked = sorted(sizes, key=lambda name: (-sizes[name], name))
        shown, rest = ranked[: len(PALETTE)], ranked[len(PALETTE) :]
        index = {name: group for group, name in enumerate(shown)}
        return cls(
            (*map(printable, shown), *(["others"] if rest else [])),
            (*PALETTE[: len(shown)], *([OTHER] if rest else [])),
            index | dict.fromkeys(rest, len(shown)),
        )


def draw_load(plot: figure, records: Iterable[UsageRecord], *, crowded: bool) -> None:
    """Draw the line of the live bytes over the steps."""
    times, loads = [0], [0]
    for span in load_spans(records):
        if span.start > times[-1]:
            times.append(times[-1])
            loads.append(0)
        times += [span.start, span.end]
        loads += [span.load, span.load]
    plot.line(times, loads, name="load", line_width=0.75 if crowded else 1.5)


def byte_ticks() -> CustomJSTickFormatter:
    """Return what writes bytes on an axis in their units."""
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
