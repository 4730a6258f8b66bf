"""Policies side by side as a page: the frontier of memory against time, and the tables."""

from collections.abc import Sequence
from html import escape

from arenite.pipeline.base import both, duration, grouped, percent, printable
from arenite.pipeline.comparison import ModelPolicies, PolicyResult

_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#ee8866",
    "#44bb99", "#bbcc33",
)  # fmt: skip
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 420, 60, 44
_TICKS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 2rem; } td, th { padding: .15rem .7rem;
  text-align: right; border-bottom: 1px solid #ddd; } td:first-child, th:first-child {
  text-align: left; } .best { font-weight: bold; } .none { color: #888; }
text { font-size: 12px; fill: currentColor; } .axis { stroke: #bbb; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; }
  td, th { border-color: #444; } .axis { stroke: #555; } }
"""


def as_policy_page(models: Sequence[ModelPolicies], command: Sequence[str]) -> str:
    """Return the page: one file that holds all it needs, and no script.

    Args:
        models: What the policies made of each model.
        command: What was asked for, to be shown.
    """
    body = "".join(map(_model, models))
    said = escape(printable(" ".join(map(str, command))))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Policies compared</title>'
        f"<style>{_STYLE}</style><h1>Memory against time</h1><p><code>{said}</code></p>"
        f"{body}</html>\n"
    )


def _model(model: ModelPolicies) -> str:
    budgets = dict.fromkeys(result.budget for result in model.results)
    tables = "".join(
        _table(model, budget, [each for each in model.results if each.budget == budget])
        for budget in budgets
    )
    return (
        f"<h2>{escape(printable(model.model))}</h2><p>{grouped(model.num_steps)} steps, peak "
        f"{both(model.peak)}, largest working set {both(model.working_set)}, predicted "
        f"{duration(model.seconds)} by the {escape(printable(model.whose))}. "
        f"{escape(printable(model.advice))}</p>"
        f"{_frontier(model)}{tables}"
    )


def _table(model: ModelPolicies, budget: str, results: Sequence[PolicyResult]) -> str:
    times = [each.extra_time for each in results if each.extra_time is not None]
    rows = []
    for each in results:
        if each.peak is None or each.extra_time is None:
            reached = f"({grouped(each.reached)})" if each.reached is not None else "-"
            cells = (each.policy, reached, "-", "-", "-", duration(each.decide_s))
            kind, title = "none", escape(printable(each.reason))
        else:
            cells = (
                each.policy,
                f"{grouped(each.peak)} ({percent(each.peak / model.peak)})",
                percent(each.extra_time),
                grouped((each.bytes_out or 0) + (each.bytes_back or 0)),
                duration(each.stalled_s or 0.0),
                duration(each.decide_s),
            )
            kind, title = ("best" if each.extra_time == min(times) else ""), ""
        marked = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr class="{kind}" title="{title}">{marked}</tr>')
    heads = ("policy", "peak, B", "extra time", "moved, B", "stalls", "decided in")
    head = "".join(f"<th>{each}</th>" for each in heads)
    return f"<h3>Budget {escape(budget)}</h3><table><tr>{head}</tr>{''.join(rows)}</table>"


def _frontier(model: ModelPolicies) -> str:
    """Return the drawing: to the left less memory, up more time."""
    points: dict[str, list[tuple[float, float]]] = {}
    for each in model.results:
        if each.peak is not None and each.extra_time is not None and model.peak:
            place = (each.peak / model.peak, max(0.0, each.extra_time))
            points.setdefault(each.policy, []).append(place)
    most = max((y for its in points.values() for _, y in its), default=0.0)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH + 200} {_HEIGHT}" role="img" '
        'aria-label="extra time by memory, for each policy">'
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _across(share)
        parts.append(
            f'<line class="axis" x1="{x:.1f}" y1="10" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{share:.0%}</text>'
        )
    for tick in [tick for tick in _TICKS if tick <= max(most * 1.5, 0.01)]:
        y = _up(tick, most)
        parts.append(
            f'<line class="axis" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">+{tick:.0%}</text>'
        )
    parts.append(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">peak, of that without a '
        "policy</text>"
    )
    for index, (policy, its) in enumerate(points.items()):
        parts.append(_curve(index, policy, sorted(its), most))
    return "".join(parts) + "</svg>"


def _curve(index: int, policy: str, its: Sequence[tuple[float, float]], most: float) -> str:
    colour = _COLOURS[index % len(_COLOURS)]
    dash = ' stroke-dasharray="5 3"' if index >= len(_COLOURS) else ""
    line = " ".join(f"{_across(x):.1f},{_up(y, most):.1f}" for x, y in its)
    dots = "".join(
        f'<circle cx="{_across(x):.1f}" cy="{_up(y, most):.1f}" r="3.5" fill="{colour}">'
        f"<title>{escape(policy)}: {x:.1%}, +{y:.2%}</title></circle>"
        for x, y in its
    )
    y = 20 + 18 * index
    return (
        f'<polyline points="{line}" fill="none" stroke="{colour}"{dash}/>{dots}'
        f'<line x1="{_WIDTH + 16}" y1="{y - 4}" x2="{_WIDTH + 40}" y2="{y - 4}" '
        f'stroke="{colour}" stroke-width="2"{dash}/>'
        f'<text x="{_WIDTH + 46}" y="{y}">{escape(policy)}</text>'
    )


def _across(share: float) -> float:
    return _LEFT + min(share, 1.05) / 1.05 * (_WIDTH - _LEFT)


def _up(time: float, most: float) -> float:
    """Return the height of a time; its cube root, so that little and much are both told apart."""
    top = max(most * 1.1, 0.01)
    part = float((min(time, top) / top) ** (1 / 3))
    return _HEIGHT - _BOTTOM - part * (_HEIGHT - _BOTTOM - 10)
