"""Tables of the strategies on one model, and of changes against a baseline."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from arenite.cli.render.facts import facts, listing, name
from arenite.pipeline.base import (
    both,
    duration,
    gap,
    grouped,
    one_line,
    percent,
    plural,
    sizes_text,
)
from arenite.pipeline.comparison import Difference
from arenite.pipeline.report import ModelReport, PeerResult, SkippedStrategy, StrategyResult, price

_Row = tuple[RenderableType, ...]


def comparison_table(report: ModelReport) -> RenderableType:
    """Return the table of one model and the reasons for its gaps."""
    rows = [*_strategy_rows(report), *map(_peer_row, report.peers)]
    reasons = [(each.strategy, each.reason) for each in report.skipped]
    reasons += [(each.peer, each.reason) for each in report.peers if each.arena is None]
    return Group(
        facts(_facts(report)),
        Text(),
        listing(("", "strategy", "kind", "height, B>", "gap>", "objects' gap>", "time>"), rows),
        *(Text(f"{who}: {one_line(reason)}", "dim") for who, reason in reasons),
        Text(),
        *_sizes_tables(report),
    )


def _sizes_tables(report: ModelReport) -> Iterator[RenderableType]:
    """Yield the table of heights over sizes, of a plan for a range."""
    if not report.sizes or report.winner is None:
        return
    strategies = [each.strategy for each in report.results]
    rows: list[_Row] = [
        (
            Text("one plan for all sizes", "bold"),
            *(grouped(report.winner.height) for _ in report.sizes),
        ),
        (
            "of it, pages that a size touches",
            *(grouped(each.touched.resident) for each in report.sizes),
        ),
        ("lower bound of the size alone", *(grouped(each.lower_bound) for each in report.sizes)),
    ]
    for strategy in strategies:
        heights = [each.heights.get(strategy) for each in report.sizes]
        cells = ("-" if each is None else grouped(each) for each in heights)
        rows.append((name(f"{strategy}, of the size alone"), *cells))
    columns = (f"{sizes_text(each.touched.sizes)}>" for each in report.sizes)
    yield listing(("height, B", *columns), rows)
    yield Text()


def differences_table(differences: Iterable[Difference], most: float | None) -> RenderableType:
    """Return the models, their lowest arenas then and now.

    Args:
        most: Growth that is still allowed; None for any.
    """
    return listing(
        ("model", "before, B>", "now, B>", "change, B>", "growth>", ""),
        [_difference_row(difference, most) for difference in differences],
    )


def _facts(report: ModelReport) -> Iterator[tuple[str, str]]:
    problem = report.source.problem
    yield "planned", f"{plural(len(problem.records), 'record')} {report.phrase}"
    yield "no reuse", both(report.naive)
    yield "lower bound", both(problem.lower_bound)
    if report.best_bound > problem.lower_bound:
        yield "proved by search", both(report.best_bound)
    for result in report.results:
        if objects := result.plan.objects:
            yield "of shared objects", both(objects.lower_bound)
            break
    if report.frontier is not None:
        least = report.frontier.points[-1]
        yield "in bands of rows", f"{both(least.height)} at the least, {price(least)}"


def _strategy_rows(report: ModelReport) -> Iterator[_Row]:
    """Yield the rows of the strategies in the order of their table, those without a plan last."""
    lowest = None if report.winner is None else report.winner.height
    for result in report.results:
        yield _row(report, result, wins=result.height == lowest)
    for skipped in report.skipped:
        yield _skipped_row(skipped)


def _row(report: ModelReport, result: StrategyResult, *, wins: bool) -> _Row:
    objects = result.plan.objects
    style = "bold green" if wins else ""
    return (
        Text("*" if wins else "", style),
        name(result.strategy, style),
        result.kind.value,
        Text(grouped(result.height), style),
        "optimal" if report.proved(result) else gap(result.height, report.best_bound),
        gap(objects.total, objects.lower_bound) if objects else "",
        duration(result.seconds) + (" !" if result.interrupted else ""),
    )


def _skipped_row(skipped: SkippedStrategy) -> _Row:
    return "", name(skipped.strategy), skipped.kind.value, "-", "-", "", "-"


def _peer_row(peer: PeerResult) -> _Row:
    arena = "-" if peer.arena is None else grouped(peer.arena)
    return "", name(peer.peer), "peer", arena, "", "", ""


def _difference_row(difference: Difference, most: float | None) -> Sequence[RenderableType]:
    before, now = difference.before, difference.now
    if before is None or now is None:
        return (
            name(difference.model),
            "-" if before is None else grouped(before),
            "-" if now is None else grouped(now),
            "",
            "",
            "new" if before is None else "not compared",
        )
    too_much = most is not None and difference.growth > most
    change = now - before
    return (
        name(difference.model),
        grouped(before),
        grouped(now),
        f"{change:+,}" if change else "0",
        ("-" if change < 0 else "") + percent(abs(difference.growth)),
        Text("grew too much", "bold red") if too_much else "",
    )
