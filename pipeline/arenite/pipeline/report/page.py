"""The page people look at: one file that holds all it needs."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from arenite.pipeline.report.compression import CompressionResult
from arenite.pipeline.report.results import FailedModel, ModelReport
from arenite.pipeline.report.summary import offered
from arenite.pipeline.report.words import page_model
from arenite.planner.errors import MissingDependencyError

_TEMPLATES = Path(__file__).parent / "templates"
_PACKAGES = ("bokeh", "jinja2")
_OFFSETS_BUDGET = 1_500_000  # characters of offsets on the page, shared by its models
_ROWS_BUDGET = 750_000  # bytes of the maps of rows, a million characters on the page


def check_packages() -> None:
    """Return if the packages that draw the page are installed.

    Raises:
        MissingDependencyError: It is not.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingDependencyError(package, "report", "an HTML report")


def stylesheet() -> str:
    """Return the style of all pages."""
    return (_TEMPLATES / "style.css").read_text()


def render(template: str, page: object, figures: object) -> str:
    """Return a page.

    Args:
        figures: The data of its script, as JSON.

    Raises:
        MissingDependencyError: A package that draws the page is absent.
    """
    check_packages()
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(template).render(
        page=page,
        data=_script_json(figures),
        bokeh="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
    )


def as_page(
    compared: Sequence[ModelReport | FailedModel],
    command: Sequence[str],
    compressions: Sequence[CompressionResult] = (),
) -> str:
    """Return the page.

    Args:
        compared: The models, in the order they are shown.
        compressions: Results of compression by model, if known.

    Raises:
        MissingDependencyError: A package that draws the page is absent.
    """
    check_packages()
    from arenite.pipeline.report.figures import CARRIED, WORKING_SET, model_figures

    reports = [each for each in compared if isinstance(each, ModelReport)]
    budget = _OFFSETS_BUDGET // max(1, len(reports))
    choices = [offered(report, budget) for report in reports]
    by_name = {each.model: each for each in compressions}
    mapped = _drawn(reports)
    page = page_model(compared, choices, command, by_name, (WORKING_SET, CARRIED), mapped)
    figures = [
        None
        if section.figure is None
        else model_figures(report, chosen, with_rows=report.model in mapped)
        for section, report, chosen in zip(page.sections, reports, choices, strict=True)
    ]
    return render("report.html.j2", page, figures)


def _drawn(reports: Sequence[ModelReport]) -> set[str]:
    """Return the models whose least programs are drawn: those of the smallest maps."""
    sizes = {each.model: each.frontier.least.num_bytes for each in reports if each.frontier}
    drawn: set[str] = set()
    for model in sorted(sizes, key=lambda model: (sizes[model], model)):
        if drawn and sum(map(sizes.__getitem__, drawn)) + sizes[model] > _ROWS_BUDGET:
            break
        drawn.add(model)
    return drawn


def _script_json(value: object) -> str:
    """Return JSON that no name from a model can turn into markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
