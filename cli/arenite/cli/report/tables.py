"""The comparison as CSV for programs and as Markdown for pull requests."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from arenite.cli.render.numbers import gap, grouped, percent
from arenite.cli.render.text import printable
from arenite.planner.report import ModelReport, StrategyResult

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
    reports: Sequence[ModelReport], before: Mapping[str, int | None] | None = None
) -> str:
    """Return a table of the models, then what each strategy makes of them, folded.

    Args:
        reports: The models, which are named as they were asked for, folders included.
        before: The lowest arena that each had, for a column of growth; None for no column.
    """
    columns = ["model", "arena, B"] + ([] if before is None else ["growth"])
    columns += ["against no reuse", "above the bound", "strategy"]
    lines = [
        _line(columns),
        _line(["---", *("--:" for _ in columns[1:-1]), "---"]),
        *(_line(_model_cells(report, before)) for report in reports),
    ]
    for report in reports:
        lines += ["", f"<details><summary>{_cell(report.model)}</summary>", ""]
        lines += _strategies(report)
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _model_cells(report: ModelReport, before: Mapping[str, int | None] | None) -> list[str]:
    winner = report.winner
    arena = saved = distance = strategy = "-"
    if winner is not None:
        arena, strategy = grouped(winner.height), f"`{winner.strategy}`"
        saved = f"{percent(1 - winner.height / report.naive)} less" if report.naive else "-"
        distance = "optimal" if report.proved(winner) else gap(winner.height, report.best_bound)
    growth = [] if before is None else [_growth(before.get(report.model), winner)]
    return [_cell(report.model), arena, *growth, saved, distance, strategy]


def _growth(before: int | None, winner: StrategyResult | None) -> str:
    """Return the change since the baseline, in bytes and as a part of what was."""
    if before is None or winner is None:
        return "new" if before is None else "-"
    change = winner.height - before
    if not change:
        return "0"
    sign = "+" if change > 0 else "-"
    share = f" ({sign}{percent(abs(change) / before)})" if before else ""
    return f"{sign}{grouped(abs(change))} B{share}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
