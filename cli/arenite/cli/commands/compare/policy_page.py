"""Policies side by side as a page: the frontier of memory against time, and the tables."""

import math
from collections.abc import Sequence
from html import escape

from arenite.pipeline.base import both, duration, grouped, percent, plural, printable
from arenite.pipeline.comparison import ModelPolicies, PolicyResult
from arenite.pipeline.report import made_with, stylesheet
from arenite.planner.units import format_size

_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#ee8866",
    "#44bb99", "#bbcc33",
)  # fmt: skip
_DASHES = ("", "5 3", "1 3")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 800, 440, 74, 46, 12
_LEGEND, _LINE = 230, 18
_NEAREST = 17.0
"""Fewest pixels between two labels of an axis."""
_KNEE = 0.03
"""Extra time up to which the axis of time is about linear; beyond, it is logarithmic."""
_STYLE = """
svg { width: 100%; height: auto; } svg text { font-size: 13px; fill: var(--ink); }
svg .tick { fill: var(--soft); } svg .axis { stroke: var(--rule); }
tr.none td { color: var(--soft); } td { font-weight: inherit; }
"""


def as_policy_page(models: Sequence[ModelPolicies], command: Sequence[str]) -> str:
    """Return the page: one file that holds all it needs, and no script.

    Args:
        models: Results of the policies for each model.
        command: The command line, to be shown.
    """
    said = escape(printable(" ".join(map(str, command))))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>Policies compared</title>'
        f'<link rel="icon" href="data:,"><style>{stylesheet()}{_STYLE}</style></head><body>'
        '<header><p class="brand">Arenite <span>policies compared</span></p>'
        f"<h1>{_headline(models)}</h1></header><main>{''.join(map(_model, models))}"
        '<section class="made"><h2>How this was made</h2>'
        f"<p><code>{said}</code></p><p>{escape(made_with())}</p></section></main></body></html>\n"
    )


def _headline(models: Sequence[ModelPolicies]) -> str:
    """Return the quickest program at the lowest budget of a single model, else the count."""
    if len(models) != 1:
        return f"Memory against time of {plural(len(models), 'model')}"
    (model,) = models
    name = f'<span class="file">{escape(printable(model.model.rpartition("/")[2]))}</span>'
    made = [
        (each.limit or math.inf, each.extra_time, each.peak, each.policy)
        for each in model.results
        if each.peak is not None and each.extra_time is not None
    ]
    if not made:
        return f"{name}: no policy meets a budget"
    _, extra, peak, policy = min(made)
    return (
        f"{name} computes in <b>{format_size(peak)}</b> instead of {format_size(model.peak)} at "
        f"{percent(max(0.0, extra))} more time, by {escape(policy)}"
    )


def _model(model: ModelPolicies) -> str:
    budgets = dict.fromkeys(result.budget for result in model.results)
    tables = "".join(
        _table(model, budget, [each for each in model.results if each.budget == budget])
        for budget in budgets
    )
    figures = (
        ("peak without a policy", both(model.peak)),
        ("largest working set", both(model.working_set)),
        ("predicted time", duration(model.seconds)),
        ("steps", grouped(model.num_steps)),
    )
    remarks = "".join(f'<p class="fine">{escape(each)}</p>' for each in model.remarks)
    said = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return (
        f'<section><h2>{escape(printable(model.model))}</h2><dl class="figures">{said}</dl>'
        f'<p class="advice">{escape(printable(model.advice))}</p>'
        f"<h3>Memory against time</h3>{_frontier(model)}"
        f'<p class="fine">Predicted by the {escape(printable(model.whose))}. A row in grey misses '
        f"its budget; in brackets the lowest peak that it reaches.</p>{remarks}{tables}</section>"
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
            kind, title = ("wins" if each.extra_time == min(times) else ""), ""
        first, *others = map(escape, cells)
        marked = f"<td>{first}</td>" + "".join(f'<td class="n">{cell}</td>' for cell in others)
        rows.append(f'<tr class="{kind}" title="{title}">{marked}</tr>')
    heads = ("peak, B", "extra time", "moved, B", "stalls", "decided in")
    head = "<th>policy</th>" + "".join(f'<th class="n">{each}</th>' for each in heads)
    return (
        f'<h3>Budget {escape(budget)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _frontier(model: ModelPolicies) -> str:
    """Return the drawing: to the left less memory, up more time."""
    points: dict[str, list[tuple[float, float]]] = {}
    for each in model.results:
        if each.peak is not None and each.extra_time is not None and model.peak:
            place = (each.peak / model.peak, max(0.0, each.extra_time))
            points.setdefault(each.policy, []).append(place)
    ticks = time_ticks(max((y for its in points.values() for _, y in its), default=0.0))
    most = ticks[-1]
    height = max(_HEIGHT, _TOP + _LINE * (len(points) + 1))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH + _LEGEND} {height}" role="img" '
        'aria-label="extra time by memory, for each policy">'
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _across(share)
        parts.append(
            f'<line class="axis" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
            f"{share:.0%}</text>"
        )
    for tick in ticks:
        y = _up(tick, most)
        parts.append(
            f'<line class="axis" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"+{tick:,.0%}</text>"
        )
    parts.append(
        f'<text class="tick" x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        "peak, of that without a policy</text>"
    )
    for index, (policy, its) in enumerate(points.items()):
        parts.append(_curve(index, policy, sorted(its), most))
    return "".join(parts) + "</svg>"


def _curve(index: int, policy: str, its: Sequence[tuple[float, float]], most: float) -> str:
    colour = _COLOURS[index % len(_COLOURS)]
    dashes = _DASHES[index // len(_COLOURS) % len(_DASHES)]
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = " ".join(f"{_across(x):.1f},{_up(y, most):.1f}" for x, y in its)
    dots = "".join(
        f'<circle cx="{_across(x):.1f}" cy="{_up(y, most):.1f}" r="4" fill="{colour}">'
        f"<title>{escape(policy)}: {x:.1%}, +{y:.2%}</title></circle>"
        for x, y in its
    )
    y = _TOP + _LINE * (index + 1)
    return (
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>{dots}'
        f'<line x1="{_WIDTH + 20}" y1="{y - 4}" x2="{_WIDTH + 46}" y2="{y - 4}" '
        f'stroke="{colour}" stroke-width="2"{dash}/>'
        f'<circle cx="{_WIDTH + 33}" cy="{y - 4}" r="4" fill="{colour}"/>'
        f'<text x="{_WIDTH + 54}" y="{y}">{escape(policy)}</text>'
    )


def time_ticks(most: float) -> list[float]:
    """Return the extra times that are labelled, up to the first that is above the most."""
    wanted = [0.0]
    while len(wanted) < 2 or wanted[-1] < most:
        power, second = divmod(len(wanted) - 1, 2)
        wanted.append((0.03 if second else 0.01) * 10.0**power)
    top = wanted[-1]
    kept = [0.0]
    for tick in wanted[1:-1]:
        if min(_up(kept[-1], top) - _up(tick, top), _up(tick, top) - _up(top, top)) >= _NEAREST:
            kept.append(tick)
    return [*kept, top]


def _across(share: float) -> float:
    return _LEFT + min(share, 1.05) / 1.05 * (_WIDTH - _LEFT)


def _up(time: float, most: float) -> float:
    """Return the height of a time: little and much are both told apart."""
    top = math.log1p(max(most, 0.01) / _KNEE)
    part = math.log1p(min(time, max(most, 0.01)) / _KNEE) / top
    return _HEIGHT - _BOTTOM - part * (_HEIGHT - _BOTTOM - _TOP)
