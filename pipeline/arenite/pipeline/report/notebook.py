"""Results as a notebook shows them: a memory map or a frontier, without scripts."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from arenite.pipeline.base.text import both, percent, printable
from arenite.pipeline.report.frontier import Point
from arenite.pipeline.report.row_map import RowMap
from arenite.pipeline.report.row_svg import as_svg
from arenite.planner import Plan, Source

if TYPE_CHECKING:
    from arenite.pipeline.report.results import ModelReport

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 420, 200, 64, 30


def plan_as_html(summary: str, source: Source, plan: Plan) -> str:
    picture = as_svg(source.name, [("Plan", RowMap.of(source, plan))])
    return f"<p>{escape(printable(summary))}</p>{picture}"


def frontier_as_html(name: str, points: Sequence[Point]) -> str:
    """Return the frontier of a model, bytes over predicted time, with its table."""
    rows = [
        (both(each.height), percent(each.slowdown), f"{each.multiply_adds_ratio:.3f}", each.turns)
        for each in points
    ]
    heading = ("arena", "more time, predicted", "multiply-adds", "turns")
    return f"<p>{escape(printable(name))}</p>{_plot(points)}{_table(heading, rows)}"


def comparison_as_html(reports: "Sequence[ModelReport]") -> str:
    """Return the lowest plan of each model as a table."""
    rows = [
        (
            each.source.name,
            both(each.naive),
            both(each.best_bound),
            "" if each.winner is None else both(each.winner.height),
            "" if each.winner is None else each.winner.strategy,
        )
        for each in reports
    ]
    return _table(("model", "without reuse", "lower bound", "lowest plan", "strategy"), rows)


def _plot(points: Sequence[Point]) -> str:
    top = max(each.height for each in points) or 1
    longest = max((each.slowdown for each in points), default=0.0) or 1.0

    def at(each: Point) -> tuple[float, float]:
        x = _LEFT + each.slowdown / longest * (_WIDTH - _LEFT - 12)
        return round(x, 1), round(8 + (1 - each.height / top) * (_HEIGHT - _BOTTOM - 8), 1)

    places = [at(each) for each in points]
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3.5" fill="#2a6fb0"/>' for x, y in places)
    floor = _HEIGHT - _BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img"><title>memory against time</title>'
        "<style>text{font:12px system-ui,sans-serif;fill:currentColor}</style>"
        f'<path d="M{_LEFT} 8V{floor}H{_WIDTH - 8}" fill="none" stroke="#8a8f96"/>'
        f'<polyline points="{line}" fill="none" stroke="#2a6fb0"/>{dots}'
        f'<text x="{_LEFT - 6}" y="14" text-anchor="end">{top / 1024:,.0f} KiB</text>'
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">as fast as whole</text>'
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 10}" text-anchor="end">'
        f"{percent(longest)} more time</text></svg>"
    )


def _table(heading: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heading)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(printable(str(cell)))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
