"""What the page of a frontier draws: memory against time, and two maps of memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, CustomJSHover, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import BoxAnnotation
from bokeh.models.renderers import DataRenderer
from bokeh.plotting import figure

from arenite.cli.commands.fit.fitting import Fit
from arenite.cli.render.numbers import percent
from arenite.cli.render.text import elided, printable
from arenite.cli.report.plots import (
    CROWDED,
    MARGIN,
    Groups,
    byte_ticks,
    draw_load,
    empty_plot,
)
from arenite.cli.report.records import record_facts
from arenite.planner.diagnosis import diagnose
from arenite.planner.source import Source
from arenite.planner.tensors import TensorKind
from arenite.planner.units import format_size
from arenite.strategies.fit.bands import Banded
from arenite.strategies.fit.binding import owners_of

MAPS = ("map-whole", "map-least")
FRONTIER = "frontier"

_FRONTIER_HEIGHT = 400
_MAP_HEIGHT = 420
_NAME_LENGTH = 64
_SLANT = pi / 4  # labels of neighbours that are close do not meet
_NEAREST = 1.08  # of the memory of the next label; what is nearer goes without
_POINT_TOOLTIP = """
<div class="arenite-tip"><b>@height{0,0} B</b>, @share of the whole<br>
@time{0.00} times the time, @how<br>@turns{0,0} turns</div>
"""
_MAP_TOOLTIP = """
<div class="arenite-tip"><b>@tensor{custom}</b><br>@size{0,0} B at @bottom{0,0}<br>
turns [@left{0}, @right{0})<br>made by @label{custom}</div>
"""


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of operators, the same on both maps.

    Attributes:
        groups: Operators by what their results take.
        labels: For each map, the operator that makes each record.
    """

    groups: Groups
    labels: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, programs: Sequence[Banded]) -> "Colours":
        """Return colours in which what takes most of a map is not grey."""
        shares: Counter[str] = Counter()
        labels: list[tuple[str, ...]] = []
        for each in programs:
            found = each.derivation
            source = Source.derived("", "", found)
            labels.append(
                tuple(
                    "graph input" if fact.kind == TensorKind.INPUT else fact.label
                    for fact in record_facts(source)
                )
            )
            area = max(1, each.height) * max(1, found.problem.num_steps)
            for record, label in zip(found.problem.records, labels[-1], strict=True):
                taken = sum(stair.size * (stair.end - stair.start) for stair in record.stairs)
                shares[label] += 1_000_000 * taken // area
        return cls(Groups.of(shares), tuple(labels))


def frontier_figure(fits: Sequence[Fit], ratios: Sequence[float]) -> figure:
    """Return memory against time, as predicted and, where it was, as measured.

    Args:
        fits: The frontier, that of the whole program first.
        ratios: Measured times over that of the whole program; none if none was measured.
    """
    predicted = [1 + fit.slowdown for fit in fits]
    heights = [max(1, fit.height) for fit in fits]
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
                "turns": [fit.banded.num_turns for fit in fits],
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


def memory_map(banded: Banded, labels: Sequence[str], groups: Groups, name: str) -> figure:
    """Return what lies where, turn by turn.

    Args:
        banded: The program.
        labels: Operator that makes each record.
        groups: Their colours.
        name: Of the figure.
    """
    problem = banded.derivation.problem
    owners = owners_of(banded.derivation.program)
    numbers: dict[str, int] = {}
    label_numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    drawn = list(problem.rectangles(banded.plan.offsets))
    tensors: list[int] = []
    makers: list[int] = []
    fills: list[str] = []
    for record, label in zip(problem.records, labels, strict=True):
        owner = owners.get(record.name, record.name)
        number = numbers.setdefault(owner, len(numbers))
        count = len(record.stairs)
        tensors += [number] * count
        makers += [label_numbers[label]] * count
        fills += [groups.colours[groups.index[label]]] * count
    # Arrays of numbers go into the page as bytes, at a few a rectangle.
    source = ColumnDataSource(
        {
            "left": np.array([each.start for each in drawn], np.int32),
            "right": np.array([each.end for each in drawn], np.int32),
            "bottom": np.array([each.offset for each in drawn], np.float64),
            "top": np.array([each.offset + each.size for each in drawn], np.float64),
            "size": np.array([each.size for each in drawn], np.float64),
            "tensor": np.array(tensors, np.int32),
            "label": np.array(makers, np.int32),
            "fill": fills,
        }
    )
    steps = Range1d(start=0, end=max(1, problem.num_steps), bounds="auto")
    plot = empty_plot(_MAP_HEIGHT, steps, max(1.0, banded.height * MARGIN), name)
    crowded = problem.num_steps > CROWDED
    binding = diagnose(banded.derivation.program, problem).binding
    if binding is not None:
        plot.add_layout(BoxAnnotation(left=binding.step, right=binding.step + 1, name="binding"))
    rectangles = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name="rectangles",
        fill_color="fill", line_color="white", line_width=0.0 if crowded else 0.5,
        hover_fill_alpha=0.7,
    )  # fmt: skip
    draw_load(plot, problem.records, crowded=crowded)
    hover = HoverTool(renderers=[rectangles], tooltips=_MAP_TOOLTIP)
    hover.formatters = {
        "@tensor": _lookup([elided(printable(each), _NAME_LENGTH) for each in numbers]),
        "@label": _lookup([printable(each) for each in label_numbers]),
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
    """Return the points that are labelled: the whole, the least, and what has room between."""
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
