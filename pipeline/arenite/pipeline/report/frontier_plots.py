"""Drawings of a frontier: memory against time, and maps of programs in bands."""

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, CustomJSHover, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import BoxAnnotation
from bokeh.models.renderers import DataRenderer
from bokeh.plotting import figure
from bokeh.transform import linear_cmap

from arenite.pipeline.base.text import elided, percent, printable
from arenite.pipeline.report.colours import Groups
from arenite.pipeline.report.frontier import Point
from arenite.pipeline.report.plots import CROWDED, MARGIN, byte_ticks, draw_load, empty_plot
from arenite.pipeline.report.row_map import RowMap
from arenite.planner.units import format_size

FRONTIER = "frontier"

_FRONTIER_HEIGHT = 400
_MAP_HEIGHT = 420
_NAME_LENGTH = 64
_SLANT = pi / 4  # labels of neighbours that are close do not meet
_NEAREST = 1.08  # of the memory of the next label; nearer points have no label
_POINT_TOOLTIP = """
<div class="arenite-tip"><b>@height{0,0} B</b>, @share of the whole<br>
@time{0.00} times the time, @how<br>@turns{0,0} turns</div>
"""
_MAP_TOOLTIP = """
<div class="arenite-tip"><b>@tensor{custom}</b><br>@top{custom} B at @bottom{0,0}<br>
turns [@left{0}, @right{0})<br>made by @label{custom}</div>
"""


def frontier_figure(points: Sequence[Point], ratios: Sequence[float]) -> figure:
    """Return memory against time, as predicted and, where it was, as measured.

    Args:
        points: The frontier, that of the whole program first.
        ratios: Measured times over that of the whole program; none if none was measured.
    """
    predicted = [1 + point.slowdown for point in points]
    heights = [max(1, point.height) for point in points]
    times = [*predicted, *ratios]
    low, high = min(times), max(times)
    room = max(high - low, 0.02)
    plot = figure(
        name=FRONTIER, height=_FRONTIER_HEIGHT, sizing_mode="stretch_width", x_axis_type="log",
        x_range=Range1d(start=min(heights) / 1.25, end=max(heights) * 2.2),
        y_range=Range1d(start=low - 0.12 * room, end=high + 0.85 * room),
        tools=[], toolbar_location=None, min_border_left=64, background_fill_color=None,
        border_fill_color=None, outline_line_color=None,
    )  # fmt: skip
    plot.xaxis.ticker = FixedTicker(ticks=_powers(min(heights), max(heights)))
    plot.xaxis.formatter = byte_ticks()
    plot.xaxis.axis_label = "arena"
    plot.yaxis.axis_label = "time, of the whole program's"
    plot.ygrid.visible = True
    plot.xgrid.visible = False
    shown: list[DataRenderer] = []
    for how, series in (("predicted", predicted), ("measured", ratios)):
        if not series:
            continue
        source = ColumnDataSource(
            {
                "height": heights,
                "time": list(series),
                "share": [percent(height / heights[0]) for height in heights],
                "turns": [point.turns for point in points],
                "how": [how] * len(series),
            }
        )
        plot.line("height", "time", source=source, name=f"line {how}", line_width=2)
        marker = "circle" if how == "predicted" else "square"
        shown.append(
            plot.scatter(
                "height", "time", source=source, name=how, size=9, marker=marker, line_color=None
            )
        )
    plot.add_tools(HoverTool(renderers=shown, tooltips=_POINT_TOOLTIP))
    above = [max(pair) for pair in zip(predicted, ratios or predicted, strict=True)]
    labelled = _labelled(heights)
    plot.text(
        x=[heights[each] for each in labelled],
        y=[above[each] for each in labelled],
        text=[_label(heights[each], heights[0]) for each in labelled],
        angle=_SLANT, x_offset=5, y_offset=-7, text_font_size="12px", name="labels",
    )  # fmt: skip
    return plot


def row_figure(rows: RowMap, groups: Groups, name: str) -> figure:
    """Return the memory map, turn by turn."""
    fills = np.array([groups.index[operator] for operator in rows.operators], np.uint8)
    # Arrays of numbers go into the page as bytes, at a few a rectangle.
    source = ColumnDataSource(
        {
            "left": rows.starts,
            "right": rows.ends,
            "bottom": rows.bottoms,
            "top": rows.tops,
            "tensor": rows.owners,
            "label": rows.makers,
            "group": fills[rows.makers],
        }
    )
    steps = Range1d(start=0, end=max(1, rows.turns), bounds="auto")
    plot = empty_plot(_MAP_HEIGHT, steps, max(1.0, rows.height * MARGIN), name)
    crowded = rows.turns > CROWDED
    if rows.binding is not None:
        plot.add_layout(BoxAnnotation(left=rows.binding, right=rows.binding + 1, name="binding"))
    rectangles = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name="rectangles",
        fill_color=linear_cmap("group", groups.colours, 0, len(groups.colours)),
        line_color="white", line_width=0.0 if crowded else 0.5, hover_fill_alpha=0.7,
    )  # fmt: skip
    draw_load(plot, rows.times, rows.loads, crowded=crowded)
    hover = HoverTool(renderers=[rectangles], tooltips=_MAP_TOOLTIP)
    hover.formatters = {
        "@tensor": _lookup([elided(printable(each), _NAME_LENGTH) for each in rows.tensors]),
        "@label": _lookup([printable(each) for each in rows.operators]),
        "@top": CustomJSHover(
            args={"source": source},
            code="return (value - source.data.bottom[special_vars.index]).toLocaleString('en');",
        ),
    }
    plot.add_tools(hover)
    plot.yaxis.axis_label = "address"
    plot.xaxis.axis_label = "turn"
    return plot


def as_item(plot: figure) -> dict[str, Any]:
    """Return a figure as the page's script embeds it."""
    return dict(json_item(plot))


def _lookup(names: Sequence[str]) -> CustomJSHover:
    return CustomJSHover(args={"names": list(names)}, code="return names[value];")


def _label(height: int, whole: int) -> str:
    return f"{format_size(height)} · {100 * height / whole:.3g} %"


def _labelled(heights: Sequence[int]) -> list[int]:
    """Return the points to label: the whole, the least, and those with room between them."""
    last = len(heights) - 1
    found: list[int] = []
    for number, height in enumerate(heights):
        after = heights[found[-1]] / height if found else _NEAREST
        before_last = height / heights[last] if number != last else _NEAREST
        if number in {0, last} or min(after, before_last) >= _NEAREST:
            found.append(number)
    return found


def _powers(low: int, high: int) -> list[int]:
    """Return powers of two around a range, few enough to be told apart."""
    powers = [1 << bits for bits in range(max(0, low.bit_length() - 2), high.bit_length() + 2)]
    return powers[:: 1 + len(powers) // 9]
