"""From reports to the text of the page."""

import os
import platform
import shlex
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from arenite.pipeline.base.text import both, percent, plural, printable
from arenite.pipeline.report.compression import CompressionResult
from arenite.pipeline.report.frontier_words import price, trade
from arenite.pipeline.report.model import Answer, Figure, Headline, PageModel, Trade
from arenite.pipeline.report.overview import overview
from arenite.pipeline.report.results import FailedModel, ModelReport, StrategyResult
from arenite.pipeline.report.section import section
from arenite.pipeline.report.summary import binds, standings
from arenite.planner.units import format_size

_NAMED_VERSIONS = ("arenite", "numpy", "onnx", "tflite", "ortools", "bokeh")
_WORKING_SET = "working set: bytes that the step touches"
_CARRIED = "carried: live but untouched"
_CURES = {
    "working set": ("binds", "aliasing, fusing or tiling"),
    "carried tensors": ("bind", "reordering, recomputing or spilling"),
}


def page_model(
    compared: Sequence[ModelReport | FailedModel],
    choices: Sequence[Sequence[StrategyResult]],
    command: Sequence[str],
    compressions: Mapping[str, CompressionResult],
    colours: tuple[str, str],
    mapped: Container[str],
) -> PageModel:
    """Return all the page says.

    Args:
        compared: The models, in the order they are shown.
        choices: For each report, the strategies whose maps the page holds.
        compressions: Results of compression by model.
        colours: Of the working set and of carried tensors.
        mapped: Files of those whose least program is drawn.
    """
    reports = [each for each in compared if isinstance(each, ModelReport)]
    alone = len(reports) == 1
    sections = tuple(
        section(
            report, chosen, _figure(report, chosen, colours),
            _trade(report, mapped), compressions.get(report.source.name),
            alone=alone,
        )
        for report, chosen in zip(reports, choices, strict=True)
    )  # fmt: skip
    names = [printable(report.source.name) for report in reports]
    several = ", several models at a time" if len(reports) > 1 else ""
    return PageModel(
        f"Arenite: {names[0] if alone else plural(len(reports), 'model')}",
        _headline(reports),
        tuple(
            FailedModel(printable(each.model), printable(each.error))
            for each in compared
            if isinstance(each, FailedModel)
        ),
        overview(reports),
        sections,
        printable(shlex.join(("arenite", *command))),
        f"{made_with()} Times are of one run each{several}.",
        tuple((name, each.source.digest) for name, each in zip(names, reports, strict=True)),
    )


def _trade(report: ModelReport, mapped: Container[str]) -> Trade | None:
    found = report.frontier
    return None if found is None else trade(found, has_map=report.model in mapped)


def _headline(reports: Sequence[ModelReport]) -> Headline | None:
    """Return the headline; None where there is no plan at all."""
    pairs = [(report, report.winner) for report in reports if report.winner is not None]
    if not pairs:
        return None
    proved = sum(report.proved(winner) for report, winner in pairs)
    limit, remedy = _limit(reports, proved)
    saved = percent(
        median(
            1 - winner.height / report.naive if report.naive else 0.0 for report, winner in pairs
        )
    )
    if len(reports) == 1:
        ((report, winner),) = pairs
        saving = Answer(
            "How much it saves",
            format_size(report.naive - winner.height),
            f"{both(report.naive)} without reuse, {both(winner.height)} planned.",
        )
        subject, before = printable(report.source.name), "needs"
        figure, after = format_size(winner.height), f", {saved} less than without reuse"
    else:
        saving = Answer(
            "How much it saves", saved, "is the median; the bars below show each model's own."
        )
        subject, before = "", f"{plural(len(reports), 'model')} need"
        figure, after = f"{saved} less", "memory than without reuse"
    answers = (
        _strategy(reports, len(pairs), is_proved=proved > 0),
        saving,
        *_in_bands(reports),
        Answer("What limits further saving", limit, printable(remedy)),
    )
    return Headline(subject, before, figure, after, answers)


def _strategy(reports: Sequence[ModelReport], num_planned: int, *, is_proved: bool) -> Answer:
    """Return the strategy to use, and why."""
    ranked = standings(reports)
    most = ranked[0]
    equals = sum(standing.wins == most.wins for standing in ranked)
    if num_planned > 1 and most.wins < num_planned:
        why = f"It is the lowest on {most.wins} of {plural(num_planned, 'model')}."
    else:
        why = "No strategy gets lower here."
        if num_planned > 1:
            why = f"No strategy gets lower on any of the {plural(num_planned, 'model')}."
        elif is_proved:
            why = "Its plan is proved: no plan can be lower."
        if equals > 1:
            why += f" It is the quickest of {equals} that are as low."
    return Answer("Which strategy", most.strategy, why, names=True)


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


def _in_bands(reports: Sequence[ModelReport]) -> Iterator[Answer]:
    """Yield the answer on bands of rows, if they lower an arena."""
    found = [each.frontier.points for each in reports if each.frontier]
    pairs = [(points[0], points[-1]) for points in found]
    if not pairs:
        return
    shares = [least.height / max(1, whole.height) for whole, least in pairs]
    question = "In bands of rows"
    if len(reports) == 1:
        least = pairs[0][1]
        more = f"at the least, {percent(shares[0])} of the whole, at {price(least)}."
        yield Answer(question, format_size(least.height), more)
        return
    more = f"of the whole, the median of the {plural(len(pairs), 'model')} that this helps."
    yield Answer(question, percent(median(shares)), more)


def _figure(
    report: ModelReport, chosen: Sequence[StrategyResult], colours: tuple[str, str]
) -> Figure | None:
    if not (chosen and report.source.problem.records):
        return None
    diagnosis = report.diagnosis
    loads = zip(colours, (_WORKING_SET, _CARRIED), strict=True)
    return Figure(
        tuple((each.strategy, f"{each.strategy}: {format_size(each.height)}") for each in chosen),
        tuple(loads) if diagnosis is not None and diagnosis.steps else (),
    )


def made_with() -> str:
    """Return versions and machine."""
    versions = [f"Python {platform.python_version()}"]
    for package in _NAMED_VERSIONS:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}"
    processors = plural(os.cpu_count() or 1, "processor")
    return f"{', '.join(versions)}; {machine}, {processors}. Every plan was verified."
