"""The strategies ranked over all models, and the limit of a model's peak."""

from collections.abc import Sequence
from dataclasses import dataclass

from arenite.pipeline.report.results import ModelReport, StrategyResult


@dataclass(frozen=True, slots=True)
class Standing:
    """One strategy over all models.

    Attributes:
        gaps: Distance to the bound of each model, as a share; None where it has no plan.
        wins: Models on which no strategy is lower.
        worst: The largest of the gaps; None without any.
        seconds: Time for all.
    """

    strategy: str
    kind: str
    gaps: tuple[float | None, ...]
    wins: int
    worst: float | None
    seconds: float


def binds(report: ModelReport) -> str:
    """Return the kind of limit of the peak, in two words."""
    if report.diagnosis is None:
        return "not known"
    return "carried tensors" if report.diagnosis.movable else "working set"


def standings(reports: Sequence[ModelReport]) -> list[Standing]:
    """Return the strategies, the one lowest most often first, of equal ones the quickest."""
    names = {result.strategy: result.kind.value for report in reports for result in report.results}
    found: list[Standing] = []
    for name, kind in names.items():
        own = [_result(report, name) for report in reports]
        gaps = tuple(
            None if result is None else _gap(report, result)
            for report, result in zip(reports, own, strict=True)
        )
        known = [gap for gap in gaps if gap is not None]
        wins = sum(
            result is not None and winning(report, result)
            for report, result in zip(reports, own, strict=True)
        )
        seconds = sum(result.seconds for result in own if result is not None)
        found.append(Standing(name, kind, gaps, wins, max(known, default=None), seconds))
    return sorted(
        found, key=lambda standing: (-standing.wins, standing.worst or 0, standing.seconds)
    )


def lowest_first(report: ModelReport) -> list[StrategyResult]:
    """Return the results, the lowest first, of equal ones the quickest."""
    return sorted(report.results, key=lambda result: (result.height, result.seconds))


def winning(report: ModelReport, result: StrategyResult) -> bool:
    """Tell whether no strategy is lower on this model."""
    return report.winner is not None and result.height == report.winner.height


def offered(report: ModelReport, budget: int) -> tuple[StrategyResult, ...]:
    """Return the strategies whose maps the page holds, the lowest first.

    Args:
        budget: Characters that their offsets may take; the winner's are never left out.
    """
    chosen: list[StrategyResult] = []
    taken = 0
    for result in lowest_first(report):
        taken += sum(len(str(offset)) + 1 for offset in result.plan.offsets)
        if chosen and taken > budget:
            break
        chosen.append(result)
    return tuple(chosen)


def _result(report: ModelReport, strategy: str) -> StrategyResult | None:
    return next((each for each in report.results if each.strategy == strategy), None)


def _gap(report: ModelReport, result: StrategyResult) -> float:
    return result.height / report.best_bound - 1 if report.best_bound else 0.0
