"""What the site makes from the code while it builds."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from arenite.planner.importers.csv import read_csv
from arenite.strategies import ORDERS, STRATEGIES, find
from support.command import commands

DOCS = Path(__file__).parents[2] / "docs"
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def generator(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS / "generate"), *sys.path])
    return import_module(name)


@pytest.fixture
def hooks(monkeypatch):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    return generator("hooks", monkeypatch)


@pytest.fixture
def reference(monkeypatch):
    return generator("reference", monkeypatch)


@pytest.fixture
def drawing(monkeypatch):
    return generator("drawing", monkeypatch)


def test_a_part_stands_where_the_page_asks_for_it(hooks):
    page = hooks.on_page_markdown("before\n\n{{ orders }}\n\nafter", PAGE)
    assert page.startswith("before\n\n| name |")
    assert page.endswith("\n\nafter")


def test_a_part_that_nobody_makes_is_refused(hooks):
    with pytest.raises(Exception, match=r"page\.md: no part is named 'ordres'"):
        hooks.on_page_markdown("{{ ordres }}", PAGE)


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href=//example.org/a.css>',
        "<img alt='' src='http://example.org/a.png'>",
    ],
)
def test_a_page_that_loads_from_the_network_is_refused(hooks, loading):
    with pytest.raises(Exception, match=r"page\.md: loads from the network"):
        hooks.on_post_page(loading, PAGE)


def test_a_link_to_another_site_is_no_load(hooks):
    hooks.on_post_page('<a href="https://example.org">elsewhere</a>', PAGE)


def test_the_references_name_everything_there_is(reference):
    strategies, orders = reference.strategies(), reference.orders()
    assert all(f"{{ #{strategy.name} }}" in strategies for strategy in STRATEGIES)
    assert all(f"{{ #{order.name} }}" in orders for order in ORDERS)
    assert all(f"## {command}\n" in reference.command_line() for command, _ in commands())


def test_the_drawn_plan_is_to_scale(drawing):
    problem = read_csv(DOCS / "examples" / "worked-example.csv")
    plan = find("greedy-by-size")(problem)
    figure = ElementTree.fromstring(drawing.memory_map(problem, plan))
    boxes = figure.findall("./svg/rect")
    steps = {float(box.get("width")) / record.lifetime for box, record in pairs(boxes, problem)}
    heights = [float(box.get("height")) / record.size for box, record in pairs(boxes, problem)]
    assert len(steps) == 1
    assert max(heights) - min(heights) < 0.02
    lowest = max(float(box.get("y")) + float(box.get("height")) for box in boxes)
    for box, offset in zip(boxes, plan.offsets, strict=True):
        below = lowest - float(box.get("y")) - float(box.get("height"))
        assert below == pytest.approx(offset * heights[0], abs=1)


def test_the_drawn_load_marks_the_step_that_binds(drawing):
    problem = read_csv(DOCS / "examples" / "worked-example.csv")
    figure = ElementTree.fromstring(drawing.load_chart(problem))
    fills = [box.get("fill") for box in figure.findall("./svg/rect")]
    assert [fills.count(fill) for fill in dict.fromkeys(fills)] == [8, 1]


def pairs(boxes, problem):
    return zip(boxes, problem.records, strict=True)
