"""Records with outlines are drawn as their stairs."""

import json

import pytest

from arenite.cli.render.axes import TimeScale, rasterise
from arenite.pipeline.report.results import ModelReport, StrategyResult
from arenite.pipeline.report.trace import as_trace
from arenite.planner.importers.models import Source
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import StrategyKind

STAIRS = (Stair(0, 8, 0, 1), Stair(8, 8, 0, 2), Stair(16, 8, 0, 3))
PROBLEM = Problem((UsageRecord("image", 24, 0, 3, outline=STAIRS), UsageRecord("row", 8, 1, 3)))
PLAN = Plan.of(PROBLEM, (0, 0), "by hand")
RESULT = StrategyResult("by hand", StrategyKind.OFFSETS, PLAN, 0.0)
REPORT = ModelReport("rows", Source("rows", "", None, PROBLEM), (RESULT,))


def test_the_map_shows_stairs_and_what_lies_in_their_place():
    grid = rasterise(PROBLEM, PLAN, TimeScale(3, 3), 3)
    assert grid == [[0, 0, 0], [0, 0, None], [0, 1, 1]]


def test_the_trace_has_a_slice_for_each_stair():
    events = json.loads(as_trace([REPORT]))["traceEvents"]
    slices = [
        (each["name"], each["ts"] // 1000, each["dur"] // 1000, each["args"]["first"])
        for each in events
        if each["ph"] == "X"
    ]
    assert slices == [
        ("image", 0, 1, 0),
        ("image", 0, 2, 8),
        ("image", 0, 3, 16),
        ("row", 1, 2, 0),
    ]
    loads = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == "load"]
    assert loads == [24, 24, 16, 0]


def test_the_page_has_a_rectangle_for_each_stair():
    pytest.importorskip("bokeh")
    from arenite.pipeline.report.figures import model_figures

    figures = model_figures(REPORT, [RESULT])
    assert figures["offsets"] == {"by hand": [0, 8, 16, 0]}
    assert figures["colourings"]["kind"]["groups"] == [0, 0, 0, 0]
