"""From reports to what the page says."""

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from arenite.cli.render.numbers import both, percent, plural
from arenite.cli.render.text import printable
from arenite.cli.report.compression import CompressionResult
from arenite.cli.report.model import Answer, Failure, Figure, Headline, PageModel
from arenite.cli.report.overview import overview
from arenite.cli.report.section import section
from arenite.cli.report.summary import headline
from arenite.planner.report import FailedModel, ModelReport, StrategyResult
from arenite.planner.units import format_size

_NAMED_VERSIONS = ("arenite", "numpy", "onnx", "tflite", "ortools", "bokeh")
_WORKING_SET = "working set: what the step itself touches"
_CARRIED = "carried: live but untouched"


def page_model(
    compared: Sequence[ModelReport | FailedModel],
    choices: Sequence[Sequence[StrategyResult]],
    command: Sequence[str],
    compressions: Mapping[str, CompressionResult],
    colours: tuple[str, str],
) -> PageModel:
    """Return all the page says.

    Args:
        compared: The models, in the order they are shown.
        choices: For each report, the strategies whose maps the page holds.
        command: What was asked for.
        compressions: What compression made of models, by name.
        colours: Of the working set and of what is carried.
    """
    reports = [each for each in compared if isinstance(each, ModelReport)]
    alone = len(reports) == 1
    sections = tuple(
        section(
            report, chosen, _figure(report, chosen, colours),
            compressions.get(report.source.name), alone=alone,
        )
        for report, chosen in zip(reports, choices, strict=True)
    )  # fmt: skip
    names = [printable(report.source.name) for report in reports]
    several = ", several models at a time" if len(reports) > 1 else ""
    return PageModel(
        f"Arenite: {names[0] if alone else plural(len(reports), 'model')}",
        _headline(reports),
        tuple(
            Failure(printable(each.model), printable(each.error))
            for each in compared
            if isinstance(each, FailedModel)
        ),
        overview(reports),
        sections,
        printable(shlex.join(("arenite", *command))),
        f"{made_with()} Times are of one run each{several}.",
        tuple((name, each.source.digest) for name, each in zip(names, reports, strict=True)),
    )


def _headline(reports: Sequence[ModelReport]) -> Headline | None:
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
        answers = (strategy, saving, limit)
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
        (strategy, saving, limit),
    )


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
