"""The comparison as CSV for programs and as Markdown for pull requests."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from arenite.pipeline.base.text import gap, grouped, percent, printable
from arenite.pipeline.report.results import ModelReport

_COLUMNS = (
    "model", "strategy", "kind", "height", "seconds", "optimal", "naive", "lower_bound",
    "best_bound",
)  # fmt: skip
_MARKUP = {ord(character): f"&#{ord(character)};" for character in "&\\`*_{}[]<>#|~!@"}


def as_csv(reports: Iterable[ModelReport]) -> str:
    """Return one row a model and strategy, sizes in bytes; peers with the kind `peer`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for report in reports:
        bounds = (report.naive, report.source.problem.lower_bound, report.best_bound)
        for result in report.results:
            proved = str(report.proved(result)).lower()
            kind = result.kind.value
            found = (result.strategy, kind, result.height, f"{result.seconds:.6f}", proved)
            writer.writerow((report.model, *found, *bounds))
        for peer in report.peers:
            if peer.arena is not None:
                writer.writerow((report.model, peer.peer, "peer", peer.arena, "", "", *bounds))
    return stream.getvalue()


def as_markdown(
    reports: Sequence[ModelReport],
    baseline: Mapping[str, int] | None = None,
    most: float | None = None,
) -> str:
    """Return a table of the models, then the plans of each strategy, folded.

    Args:
        baseline: The lowest arena of each model before; None for no comparison.
        most: Growth that is allowed, as a share; None for any.
    """
    columns = "| model | arena, B |"
    rule = "|---|--:|"
    if baseline is not None:
        columns += " before, B | growth |"
        rule += "--:|--:|"
    lines = [f"{columns} against no reuse | above the bound | strategy |", f"{rule}--:|--:|---|"]
    lines += [_model_row(report, baseline, most) for report in reports]
    compared = {report.model for report in reports}
    for model, before in (baseline or {}).items():
        if model not in compared:
            lines.append(f"| {_cell(model)} | - | {grouped(before)} | not compared | - | - | - |")
    for report in reports:
        lines += ["", f"<details><summary>{_cell(report.model)}</summary>", ""]
        lines += _strategies(report)
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _model_row(report: ModelReport, baseline: Mapping[str, int] | None, most: float | None) -> str:
    winner = report.winner
    cells = [_cell(report.model), "-" if winner is None else grouped(winner.height)]
    if baseline is not None:
        cells += _growth(
            baseline.get(report.model), None if winner is None else winner.height, most
        )
    if winner is None:
        cells += ["-"] * 3
    else:
        saved = percent(1 - winner.height / report.naive) if report.naive else "-"
        distance = "optimal" if report.proved(winner) else gap(winner.height, report.best_bound)
        cells += [f"{saved} less", distance, f"`{winner.strategy}`"]
    return f"| {' | '.join(cells)} |"


def _growth(before: int | None, now: int | None, most: float | None) -> tuple[str, str]:
    """Return the arena before, and how much of it has come since."""
    if before is None:
        return "-", "new"
    if now is None:
        return grouped(before), "-"
    share = 0.0 if now == before else now / before - 1 if before else float("inf")
    text = ("-" if share < 0 else "") + percent(abs(share))
    return grouped(before), f"**{text}, too much**" if most is not None and share > most else text


def _strategies(report: ModelReport) -> Iterator[str]:
    yield "| strategy | kind | arena, B | above the bound |"
    yield "|---|---|--:|--:|"
    for result in report.results:
        distance = "optimal" if report.proved(result) else gap(result.height, report.best_bound)
        yield (
            f"| `{result.strategy}` | {result.kind.value} | {grouped(result.height)} | "
            f"{distance} |"
        )
    for peer in report.peers:
        arena = "-" if peer.arena is None else grouped(peer.arena)
        yield f"| {_cell(peer.peer)} | peer | {arena} | |"


def _cell(text: str) -> str:
    """Return a name from a file as text that Markdown does not act on."""
    return printable(text).translate(_MARKUP)
