"""The summary of the page: the best strategy, its saving, its distance from the bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from arenite.pipeline.base.text import plural
from arenite.pipeline.report.results import ModelReport, StrategyResult

_CURES = {
    "working set": ("binds", "aliasing, fusing or tiling"),
    "carried tensors": ("bind", "reordering, recomputing or spilling"),
}


@dataclass(frozen=True, slots=True)
class LowestPlans:
    """The answer in one glance.

    Attributes:
        saved: Share of the memory without reuse that the lowest plans save; the median.
        strategy: The one to use.
        why: A sentence.
        limit: The limit of the arenas, in a few words.
        remedy: How to lower it.
    """

    saved: float
    strategy: str
    why: str
    limit: str
    remedy: str


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


def headline(reports: Sequence[ModelReport]) -> LowestPlans | None:
    """Return the headline; None where there is no plan at all."""
    pairs = [(report, report.winner) for report in reports if report.winner is not None]
    if not pairs:
        return None
    saved = median(
        1 - winner.height / report.naive if report.naive else 0.0 for report, winner in pairs
    )
    proved = sum(report.proved(winner) for report, winner in pairs)
    ranked = standings(reports)
    most = ranked[0]
    equals = sum(standing.wins == most.wins for standing in ranked)
    quickest = f" It is the quickest of {equals} that are as low." if equals > 1 else ""
    if len(pairs) == 1:
        why = "No strategy gets lower here."
        if proved:
            why = "Its plan is proved: no plan can be lower."
    elif most.wins == len(pairs):
        why = f"No strategy gets lower on any of the {plural(len(pairs), 'model')}."
    else:
        why, quickest = f"It is the lowest on {most.wins} of {plural(len(pairs), 'model')}.", ""
    why += quickest
    return LowestPlans(saved, most.strategy, why, *_limit(reports, proved))


def binds(report: ModelReport) -> str:
    """Return the kind of limit of the peak, in two words."""
    if report.diagnosis is None:
        return "not known"
    return "carried tensors" if report.diagnosis.movable else "working set"


def _limit(reports: Sequence[ModelReport], proved: int) -> tuple[str, str]:
    if len(reports) == 1:
        report = reports[0]
        advice = "The file has records only; give the model to see the binding steps."
        if report.diagnosis is not None:
            advice = report.diagnosis.advice
        return binds(report).capitalize() if report.diagnosis is not None else "The load", advice
    counts = Counter(map(binds, reports))
    remedies = [
        f"In {counts[what]} the {what} {verb}: {cure} can help."
        for what, (verb, cure) in _CURES.items()
        if counts[what]
    ]
    limit = f"{proved} of {len(reports)} proved lowest"
    if proved:
        remedies.insert(0, "Better placement cannot lower a proved arena.")
    return limit, " ".join(remedies) or "Give the models to see the binding steps."


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
