"""From reports to the text of the page."""

import os
import platform
import shlex
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from arenite.pipeline.base.text import both, percent, plural, printable
from arenite.pipeline.report.compression import CompressionResult
from arenite.pipeline.report.frontier import Frontier
from arenite.pipeline.report.frontier_words import price, trade
from arenite.pipeline.report.model import Answer, Figure, Headline, PageModel, Trade
from arenite.pipeline.report.overview import overview
from arenite.pipeline.report.results import FailedModel, ModelReport, StrategyResult
from arenite.pipeline.report.section import section
from arenite.pipeline.report.summary import headline
from arenite.planner.units import format_size

_NAMED_VERSIONS = ("arenite", "numpy", "onnx", "tflite", "ortools", "bokeh")
_WORKING_SET = "working set: bytes that the step touches"
_CARRIED = "carried: live but untouched"


def page_model(
    compared: Sequence[ModelReport | FailedModel],
    choices: Sequence[Sequence[StrategyResult]],
    command: Sequence[str],
    compressions: Mapping[str, CompressionResult],
    colours: tuple[str, str],
    frontiers: Mapping[str, Frontier],
    mapped: Container[str],
) -> PageModel:
    """Return all the page says.

    Args:
        compared: The models, in the order they are shown.
        choices: For each report, the strategies whose maps the page holds.
        compressions: Results of compression by model.
        colours: Of the working set and of carried tensors.
        frontiers: Arenas in bands of rows by file.
        mapped: Files of those whose least program is drawn.
    """
    reports = [each for each in compared if isinstance(each, ModelReport)]
    alone = len(reports) == 1
    sections = tuple(
        section(
            report, chosen, _figure(report, chosen, colours),
            _trade(report.model, frontiers, mapped), compressions.get(report.source.name),
            alone=alone,
        )
        for report, chosen in zip(reports, choices, strict=True)
    )  # fmt: skip
    names = [printable(report.source.name) for report in reports]
    several = ", several models at a time" if len(reports) > 1 else ""
    return PageModel(
        f"Arenite: {names[0] if alone else plural(len(reports), 'model')}",
        _headline(reports, frontiers),
        tuple(
            FailedModel(printable(each.model), printable(each.error))
            for each in compared
            if isinstance(each, FailedModel)
        ),
        overview(reports, frontiers),
        sections,
        printable(shlex.join(("arenite", *command))),
        f"{made_with()} Times are of one run each{several}.",
        tuple((name, each.source.digest) for name, each in zip(names, reports, strict=True)),
    )


def _trade(model: str, frontiers: Mapping[str, Frontier], mapped: Container[str]) -> Trade | None:
    found = frontiers.get(model)
    return None if found is None else trade(found, has_map=model in mapped)


def _headline(
    reports: Sequence[ModelReport], frontiers: Mapping[str, Frontier]
) -> Headline | None:
    found = headline(reports)
    if found is None:
        return None
    strategy = Answer("Which strategy", found.strategy, found.why, names=True)
    limit = Answer("What limits further saving", found.limit, printable(found.remedy))
    saved = percent(found.saved)
    winner = reports[0].winner
    if len(reports) > 1 or winner is None:
        saving = Answer(
            "How much it saves", saved, "is the median; the bars below show each model's own."
        )
        models = plural(len(reports), "model")
        answers = (strategy, saving, *_in_bands(reports, frontiers), limit)
        return Headline(
            "", f"{models} need", f"{saved} less", "memory than without reuse", answers
        )
    naive = reports[0].naive
    saving = Answer(
        "How much it saves",
        format_size(naive - winner.height),
        f"{both(naive)} without reuse, {both(winner.height)} planned.",
    )
    return Headline(
        printable(reports[0].source.name),
        "needs",
        format_size(winner.height),
        f", {saved} less than without reuse",
        (strategy, saving, *_in_bands(reports, frontiers), limit),
    )


def _in_bands(
    reports: Sequence[ModelReport], frontiers: Mapping[str, Frontier]
) -> Iterator[Answer]:
    """Yield the answer on bands of rows, if they lower an arena."""
    leasts = [found.points[-1] for found in frontiers.values()]
    if not leasts:
        return
    question = "In bands of rows"
    if len(reports) == 1:
        whole = next(iter(frontiers.values())).points[0]
        share = percent(leasts[0].height / max(1, whole.height))
        more = f"at the least, {share} of the whole, at {price(leasts[0])}."
        yield Answer(question, format_size(leasts[0].height), more)
        return
    points = [found.points for found in frontiers.values()]
    shares = (each[-1].height / max(1, each[0].height) for each in points)
    more = f"of the whole, the median of the {plural(len(leasts), 'model')} that this helps."
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
