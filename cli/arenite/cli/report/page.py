"""The page people look at: one file that holds all it needs."""

import json
import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from arenite.cli.commands.compare.comparing import Compared
from arenite.cli.render.numbers import both, duration, exact, gap, grouped, percent, plural
from arenite.cli.render.text import elided, printable
from arenite.cli.report.compression import CompressionResult
from arenite.cli.report.summary import (
    Standing,
    binds,
    headline,
    offered,
    standings,
    winning,
)
from arenite.planner.errors import MissingDependencyError
from arenite.planner.report import FailedModel, ModelReport, layer_weights
from arenite.planner.units import format_size

_TEMPLATES = Path(__file__).parent / "templates"
_PACKAGES = ("bokeh", "jinja2")
_NAMED_VERSIONS = ("arenite", "numpy", "onnx", "tflite", "ortools", "bokeh")
_OFFSETS_BUDGET = 1_500_000  # characters of offsets on the page, shared by its models
_NUM_LAYERS = 12


def check_packages() -> None:
    """Return if what draws the page is installed.

    Raises:
        MissingDependencyError: It is not.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingDependencyError(package, "report", "an HTML report")


def as_page(
    compared: Sequence[Compared],
    command: Sequence[str],
    compressions: Sequence[CompressionResult] = (),
) -> str:
    """Return the page.

    Args:
        compared: The models, in the order they are shown.
        command: What was asked for, to be shown.
        compressions: What compression made of the weights of models, where it is known.

    Raises:
        MissingDependencyError: What draws the page is absent.
    """
    check_packages()
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from arenite.cli.report.figures import CARRIED, WORKING_SET, model_figures

    reports = [each for each in compared if isinstance(each, ModelReport)]
    budget = _OFFSETS_BUDGET // max(1, len(reports))
    choices = [offered(report, budget) for report in reports]
    figures = [
        model_figures(report, chosen).as_json()
        if chosen and report.source.problem.records
        else None
        for report, chosen in zip(reports, choices, strict=True)
    ]
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "both": both, "exact": exact, "grouped": grouped, "percent": percent,
        "duration": duration, "size": format_size, "shown": printable,
    }  # fmt: skip
    environment.globals |= {
        "gap": gap,
        "plural": plural,
        "elided": elided,
        "winning": winning,
        "binds": binds,
    }
    by_name = {each.model: each for each in compressions}
    layers = [layer_weights(report.source) for report in reports]
    return environment.get_template("report.html.j2").render(
        reports=reports,
        choices=choices,
        figures=figures,
        headline=headline(reports),
        standings=_worth_showing(reports),
        failures=[each for each in compared if isinstance(each, FailedModel)],
        layers=layers,
        compressions=[by_name.get(report.source.name) for report in reports],
        num_layers=_NUM_LAYERS,
        data=_script_json(figures),
        bokeh="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
        working_set=WORKING_SET,
        carried=CARRIED,
        command=shlex.join(("arenite", *command)),
        versions=_versions(),
        machine=_machine(),
    )


def _worth_showing(reports: Sequence[ModelReport]) -> list[Standing]:
    """Return the strategies over all models, where there are several."""
    return standings(reports) if len(reports) > 1 else []


def _script_json(value: object) -> str:
    """Return JSON that no name from a model can turn into markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for package in _NAMED_VERSIONS:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {plural(os.cpu_count() or 1, 'processor')}"
