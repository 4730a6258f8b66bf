"""Two drawings of a problem, as SVG inside a page; they take the page's colours."""

from collections.abc import Iterator
from html import escape

from arenite.planner import Plan, Problem
from arenite.planner.placement import load_spans

_STEP_WIDTH = 62
_PLOT_HEIGHT = 310
_LEFT, _TOP, _BELOW = 46, 12, 40


def memory_map(problem: Problem, plan: Plan) -> str:
    """Return steps across, addresses up, one rectangle a record."""
    scale = _PLOT_HEIGHT / plan.height
    marks = []
    for index, (record, offset) in enumerate(zip(problem.records, plan.offsets, strict=True)):
        x, width = _LEFT + record.start * _STEP_WIDTH, record.lifetime * _STEP_WIDTH
        y, height = _y(offset + record.size, scale), record.size * scale
        hue = index * 360 // len(problem.records)
        marks.append(
            f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{height:.1f}" '
            f'fill="hsl({hue} 65% 50% / 0.4)" stroke="currentColor" stroke-width="0.7"/>'
            f'<text x="{x + width / 2}" y="{y + height / 2 + 4:.1f}" text-anchor="middle">'
            f"{escape(record.name)}: {record.size} B</text>"
        )
    marks += _axes(problem.num_steps, (0, plan.height), scale)
    caption = f"The plan of {plan.strategy}: {plan.height} B"
    return _figure(problem.num_steps, marks, caption)


def load_chart(problem: Problem) -> str:
    """Return the load over the steps, with the lower bound."""
    scale = _PLOT_HEIGHT / problem.lower_bound
    marks = []
    for span in load_spans(problem.records):
        x, width = _LEFT + span.start * _STEP_WIDTH, (span.end - span.start) * _STEP_WIDTH
        y = _y(span.load, scale)
        binds = span.bound == problem.lower_bound
        marks.append(
            f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{span.load * scale:.1f}" '
            f'fill="hsl(20 65% 50% / {0.6 if binds else 0.3})"/>'
            f'<text x="{x + width / 2}" y="{y + 15:.1f}" text-anchor="middle">{span.load}</text>'
        )
    marks += _axes(problem.num_steps, (0, problem.lower_bound), scale)
    caption = f"The load in bytes at each step; its largest, {problem.lower_bound} B, binds"
    return _figure(problem.num_steps, marks, caption)


def _y(byte: int, scale: float) -> float:
    return _TOP + _PLOT_HEIGHT - byte * scale


def _axes(num_steps: int, bytes_marked: tuple[int, ...], scale: float) -> Iterator[str]:
    right = _LEFT + num_steps * _STEP_WIDTH
    for byte in bytes_marked:
        y = _y(byte, scale)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="currentColor" stroke-dasharray="4 3"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{byte}</text>'
    for step in range(num_steps):
        x = _LEFT + (step + 0.5) * _STEP_WIDTH
        yield f'<text x="{x}" y="{_TOP + _PLOT_HEIGHT + 16}" text-anchor="middle">{step}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle}" y="{_TOP + _PLOT_HEIGHT + 34}" text-anchor="middle">step</text>'


def _figure(num_steps: int, marks: list[str], caption: str) -> str:
    width = _LEFT + num_steps * _STEP_WIDTH + 10
    height = _TOP + _PLOT_HEIGHT + _BELOW
    body = "\n".join(marks)
    return (
        f'<figure>\n<svg viewBox="0 0 {width} {height}" style="width: 100%; max-width: {width}px" '
        f'font-size="12" fill="currentColor" role="img" aria-label="{escape(caption)}">\n'
        f"{body}\n</svg>\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )
