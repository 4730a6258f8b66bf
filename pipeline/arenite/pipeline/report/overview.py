"""The tables over several models, in words."""

from collections.abc import Sequence

from arenite.pipeline.base.text import duration, elided, exact, gap, percent, printable
from arenite.pipeline.report.frontier import Frontier
from arenite.pipeline.report.frontier_words import price
from arenite.pipeline.report.model import Bar, Cell, ModelRow, Overview, StandingRow
from arenite.pipeline.report.results import ModelReport
from arenite.pipeline.report.summary import Standing, binds, lowest_first, standings
from arenite.planner.units import format_size

LAST = 1e300
"""Sorts unknown values to the end."""

_TIMES = "\N{MULTIPLICATION SIGN}"
_NAME_LENGTH = 40
_COLUMN_LENGTH = 22
_HEATS = (0.05, 0.25, 1.0)
"""Gaps at which a cell takes the next heat; no gap at all has the least."""


def overview(reports: Sequence[ModelReport]) -> Overview | None:
    """Return the tables; None where there are no several models."""
    if len(reports) < 2:
        return None
    names = [printable(report.source.name) for report in reports]
    return Overview(
        tuple(map(_model_row, reports)),
        any(report.frontier for report in reports),
        tuple((elided(name, _COLUMN_LENGTH), name) for name in names),
        tuple(_standing_row(standing, len(reports)) for standing in standings(reports)),
    )


def _model_row(report: ModelReport) -> ModelRow:
    full_name = printable(report.source.name)
    name = elided(full_name, _NAME_LENGTH)
    winner = next(iter(lowest_first(report)), None)
    if winner is None:
        nothing, last = Cell("", ""), Cell("", LAST)
        arena, saved = Cell("-", LAST), Cell("", -1.0)
        return ModelRow(name, full_name, None, arena, saved, last, last, nothing, nothing)
    share = winner.height / report.naive if report.naive else 1.0
    bound = report.best_bound / report.naive if report.naive else 1.0
    proved = report.proved(winner)
    distance = winner.height / report.best_bound if report.best_bound else 1.0
    return ModelRow(
        name,
        full_name,
        Bar(f"{100 * share:.2f}", f"{100 * bound:.2f}", share),
        Cell(format_size(winner.height), winner.height, title=exact(winner.height)),
        Cell(percent(1 - share), 1 - share),
        Cell("optimal" if proved else gap(winner.height, report.best_bound), distance),
        _bands(report.frontier),
        Cell(winner.strategy, winner.strategy),
        Cell(binds(report), binds(report)),
    )


def _bands(frontier: Frontier | None) -> Cell:
    if frontier is None:
        return Cell("", LAST)
    least = frontier.points[-1]
    return Cell(format_size(least.height), least.height, f"{exact(least.height)}, {price(least)}")


def _standing_row(standing: Standing, num_models: int) -> StandingRow:
    worst = standing.worst
    return StandingRow(
        standing.strategy,
        standing.wins == num_models,
        (
            Cell(str(standing.wins), -standing.wins),
            Cell("-", LAST) if worst is None else Cell(_gap(worst), worst),
            Cell(duration(standing.seconds), standing.seconds),
            *(_gap_cell(value) for value in standing.gaps),
        ),
    )


def _gap_cell(value: float | None) -> Cell:
    if value is None:
        return Cell("-", LAST)
    heat = 0 if value == 0 else 1 + sum(value >= limit for limit in _HEATS)
    return Cell("0" if value == 0 else _gap(value), value, heat=heat)


def _gap(value: float) -> str:
    return percent(value) if value < 10 else f"{_TIMES} {value + 1:.0f}"
