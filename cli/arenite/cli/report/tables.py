"""The comparison as CSV for programs and as Markdown for pull requests."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from arenite.cli.render.numbers import gap, grouped, percent
from arenite.cli.render.text import printable
from arenite.planner.report import ModelReport

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


def as_markdown(reports: Sequence[ModelReport]) -> str:
    """Return a table of the models, then what each strategy makes of them, folded."""
    lines = [
        "| model | arena, B | against no reuse | above the bound | strategy |",
        "|---|--:|--:|--:|---|",
    ]
    lines += [_model_row(report) for report in reports]
    for report in reports:
        lines += ["", f"<details><summary>{_cell(report.source.name)}</summary>", ""]
        lines += _strategies(report)
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _model_row(report: ModelReport) -> str:
    winner = report.winner
    name = _cell(report.source.name)
    if winner is None:
        return f"| {name} | - | - | - | - |"
    saved = percent(1 - winner.height / report.naive) if report.naive else "-"
    distance = "optimal" if report.proved(winner) else gap(winner.height, report.best_bound)
    return (
        f"| {name} | {grouped(winner.height)} | {saved} less | {distance} | `{winner.strategy}` |"
    )


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
