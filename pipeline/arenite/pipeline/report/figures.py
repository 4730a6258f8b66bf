"""The interactive figures of one model: its memory map and its load over the steps."""

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool, Range1d, TapTool
from bokeh.models.annotations import BoxAnnotation, Span
from bokeh.models.renderers import DataRenderer
from bokeh.plotting import figure

from arenite.pipeline.base.text import elided, printable
from arenite.pipeline.report.colours import PALETTE, Groups
from arenite.pipeline.report.frontier_plots import as_item, frontier_figure, row_figure
from arenite.pipeline.report.plots import CROWDED, MARGIN, draw_load, empty_plot
from arenite.pipeline.report.records import RecordFacts, record_facts
from arenite.pipeline.report.results import ModelReport, StrategyResult
from arenite.pipeline.report.row_map import load_line, shares
from arenite.planner import Diagnosis, Problem
from arenite.planner.placement import load_spans

_MAP_HEIGHT = 440
_LOAD_HEIGHT = 190
_NAME_LENGTH = 96
_MAP_TOOLTIP = """
<div class="arenite-tip"><b>@name</b><br>@about<br>@size{0,0} B at @bottom{0,0}<br>
steps [@left{0}, @right{0})<br>made by @producer<br>read by @consumers</div>
"""
_LOAD_TOOLTIP = """
<div><b>step @left{0}, @operator</b><br>working set @working{0,0} B<br>
carried @carried{0,0} B<br>load @top{0,0} B</div>
"""


def model_figures(
    report: ModelReport, offered: Sequence[StrategyResult], *, with_rows: bool = False
) -> dict[str, Any]:
    """Return the data of the page's script for one model.

    Args:
        offered: The strategies that can be shown, the first of them at once.
        with_rows: Whether the map of the least program in bands is drawn.

    Returns:
        The figures as Bokeh embeds them; for each strategy the offsets of all rectangles and the
        height; the bound; for each colouring its names and colours, those beyond the palette
        sharing the last, and the group of each rectangle.
    """
    problem, frontier = report.source.problem, report.frontier
    facts = record_facts(report.source)
    labels, height = [fact.label for fact in facts], offered[0].height
    filled = shares(problem, labels, height)
    if frontier is not None:  # an operator has one colour on both maps
        filled.update(frontier.least.shares)
    groups = Groups.of(filled)
    kinds = [fact.kind for fact in facts]
    by_operator = _colouring(problem, labels, groups)
    by_kind = _colouring(problem, kinds, Groups.of(shares(problem, kinds, height)))
    steps = Range1d(start=0, end=max(1, problem.num_steps), bounds="auto")
    plots = [_memory_map(report, offered[0], facts, by_operator, steps)]
    diagnosis = report.diagnosis
    if diagnosis is not None and diagnosis.steps:
        plots.append(_load(diagnosis, steps))
    return {
        "item": dict(json_item(column(*plots, sizing_mode="stretch_width"))),
        "offsets": {
            result.strategy: [each.offset for each in problem.rectangles(result.plan.offsets)]
            for result in offered
        },
        "heights": {result.strategy: result.height for result in offered},
        "bound": report.best_bound,
        "margin": MARGIN,
        "frontier": frontier and as_item(frontier_figure(frontier.points, ())),
        "rows": as_item(row_figure(frontier.least, groups, "rows"))
        if frontier and with_rows
        else None,
        "colourings": {"operator": by_operator, "kind": by_kind},
    }


def _colouring(problem: Problem, names: Sequence[str], groups: Groups) -> dict[str, Sequence[Any]]:
    return {
        "names": groups.names,
        "colours": groups.colours,
        "groups": [
            groups.index[name]
            for record, name in zip(problem.records, names, strict=True)
            for _ in record.stairs
        ],
    }


def _memory_map(
    report: ModelReport,
    result: StrategyResult,
    facts: Sequence[RecordFacts],
    colouring: Mapping[str, Sequence[Any]],
    steps: Range1d,
) -> figure:
    problem = report.source.problem
    records = problem.records
    drawn = list(problem.rectangles(result.plan.offsets))
    owners = [fact for record, fact in zip(records, facts, strict=True) for _ in record.stairs]
    source = ColumnDataSource(
        {
            "left": [each.start for each in drawn],
            "right": [each.end for each in drawn],
            "bottom": [each.offset for each in drawn],
            "top": [each.offset + each.size for each in drawn],
            "size": [each.size for each in drawn],
            "name": [elided(printable(each.name), _NAME_LENGTH) for each in drawn],
            "about": [fact.about for fact in owners],
            "producer": [fact.producer for fact in owners],
            "consumers": [fact.consumers for fact in owners],
            "fill": [colouring["colours"][group] for group in colouring["groups"]],
        },
        name="records",
    )
    plot = empty_plot(_MAP_HEIGHT, steps, max(1.0, result.height * MARGIN), "map")
    binding = _binding_span(problem, report.diagnosis)
    if binding is not None:
        plot.add_layout(BoxAnnotation(left=binding[0], right=binding[1], name="binding"))
    crowded = problem.num_steps > CROWDED
    rectangles = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name="rectangles",
        fill_color="fill", line_color="white", line_width=0.0 if crowded else 0.5,
        nonselection_fill_alpha=0.35, hover_fill_alpha=0.7,
    )  # fmt: skip
    draw_load(plot, *load_line(records), crowded=crowded)
    plot.add_layout(
        Span(location=report.best_bound, dimension="width", line_dash="dashed", name="bound")
    )
    plot.add_tools(HoverTool(renderers=[rectangles], tooltips=_MAP_TOOLTIP))
    plot.add_tools(TapTool(renderers=[rectangles]))
    plot.yaxis.axis_label = "address"
    plot.xaxis.axis_label = "step"
    return plot


def _binding_span(problem: Problem, diagnosis: Diagnosis | None) -> tuple[int, int] | None:
    if diagnosis is not None and diagnosis.binding is not None:
        return diagnosis.binding.step, diagnosis.binding.step + 1
    most = max(load_spans(problem.records), key=lambda span: span.bound, default=None)
    return None if most is None else (most.start, most.end)


def _load(diagnosis: Diagnosis, steps: Range1d) -> figure:
    loads = diagnosis.steps
    most = max(load.load for load in loads)
    source = ColumnDataSource(
        {
            "left": [load.step for load in loads],
            "right": [load.step + 1 for load in loads],
            "zero": [0] * len(loads),
            "working": [load.working_set for load in loads],
            "carried": [load.carried for load in loads],
            "top": [load.load for load in loads],
            "operator": [elided(printable(load.operator), _NAME_LENGTH) for load in loads],
        }
    )
    plot = empty_plot(_LOAD_HEIGHT, steps, max(1.0, most * MARGIN), "steps")
    binding = diagnosis.binding
    if binding is not None:
        plot.add_layout(BoxAnnotation(left=binding.step, right=binding.step + 1, name="binding"))
    bars: list[DataRenderer] = [
        plot.quad(
            left="left", right="right", bottom=bottom, top=top, source=source,
            fill_color=colour, line_color=None,
        )
        for bottom, top, colour in (
            ("zero", "working", WORKING_SET), ("working", "top", CARRIED),
        )
    ]  # fmt: skip
    plot.add_tools(HoverTool(renderers=bars, tooltips=_LOAD_TOOLTIP))
    plot.yaxis.axis_label = "live bytes"
    plot.xaxis.axis_label = "step"
    return plot


WORKING_SET, CARRIED = PALETTE[0], PALETTE[1]
