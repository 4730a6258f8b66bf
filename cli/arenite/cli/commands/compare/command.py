"""`arenite compare`: every strategy on every model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from arenite.cli.commands.compare.policy_page import as_policy_page
from arenite.cli.commands.compare.policy_tables import policy_tables
from arenite.cli.commands.compare.tables import comparison_table, differences_table
from arenite.cli.console.observer import TERMINAL, watched
from arenite.cli.console.results import STANDARD_OUTPUT, Results
from arenite.cli.console.streams import complain, drawing_width, has_colour, note, progress
from arenite.cli.options.common import json_option, seed_option, time_limit_option
from arenite.cli.options.fitting import budget_options
from arenite.cli.options.model import reading_options, size_option
from arenite.cli.options.sections import MODEL, SectionedCommand
from arenite.cli.options.types import PERCENT, number_type
from arenite.cli.render import memory_map
from arenite.cli.render.facts import name
from arenite.pipeline.base import Reading, SearchLimits, configured, percent
from arenite.pipeline.comparison import (
    Compared,
    Comparison,
    Difference,
    PolicyContest,
    Task,
    chosen_policies,
    compare_each,
    compare_policies,
    differences,
    find_model_files,
    read_baseline,
    readings_of,
)
from arenite.pipeline.making import costs_of
from arenite.pipeline.report import (
    FailedModel,
    ModelReport,
    as_csv,
    as_markdown,
    as_page,
    as_trace,
    check_packages,
    read_compression,
)
from arenite.pipeline.targets import check_options
from arenite.planner import Budget, Link, Plan, Problem, Strategy
from arenite.planner.sizes import Sizes
from arenite.strategies import find, known

_DEFAULT_TIME_LIMIT_S = 5.0
_FILE = click.Path(path_type=Path)
_PAGE_SUFFIXES = (".html", ".htm")
_NOT_WITH_BUDGET = frozenset(
    {
        "csv", "markdown", "trace", "compression_paths", "with_peers", "baseline",
        "most_growth", "jobs", "scheduler", "points",
    }
)  # fmt: skip


@click.command(
    cls=SectionedCommand,
    sections={
        "Files": ("page", "csv", "markdown", "trace", "compression_paths"),
        "Regressions": ("baseline", "most_growth"),
        "Processes": ("jobs", "scheduler"),
        "Time for memory": ("budgets", "machine", "link"),
        **MODEL,
    },
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=_FILE)
@click.option(
    "-o", "--output", "page", type=_FILE, metavar="REPORT.html", help="Write an HTML report."
)
@click.option("--csv", type=_FILE, metavar="FILE", help="Write a CSV table.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write a Markdown table.")
@click.option(
    "--trace", type=_FILE, metavar="FILE", help="Write the lowest plans as a Perfetto trace."
)
@click.option(
    "--compression", "compression_paths", type=_FILE, multiple=True, metavar="RESULT.json",
    help="Add the output of 'arenite compress --json' to the report. Repeatable.",
)  # fmt: skip
@click.option(
    "--strategy",
    "requested",
    metavar="NAME",
    multiple=True,
    help="Compare only this strategy. Repeatable.",
)
@click.option("--quick", is_flag=True, help="Skip the strategies that search.")
@click.option(
    "--bands/--no-bands", "with_bands", default=None,
    help="Also run the model in bands of rows, and show memory against time.  [default: where a "
    "report is written or with --policies, but not with --quick]",
)  # fmt: skip
@click.option(
    "--peers", "with_peers", is_flag=True, help="Also ask other tools that are installed."
)
@click.option(
    "--baseline", type=_FILE, metavar="OLD.json", help="Show what changed since an earlier --json."
)
@click.option(
    "--fail-over",
    "most_growth",
    type=PERCENT,
    metavar="PERCENT",
    help="Exit with 1 if an arena grew by more than this, such as 2%; requires --baseline.",
)
@click.option(
    "-j",
    "--jobs",
    type=number_type(1),
    metavar="N",
    help="Number of models to plan at once.  [default: number of processors]",
)
@click.option("--scheduler", metavar="ADDRESS", help="Plan on the Dask cluster of this scheduler.")
@budget_options
@reading_options
@size_option("Size of a range to compare with a plan of its own.  [default: five along the range]")
@time_limit_option(_DEFAULT_TIME_LIMIT_S, "Stop each search after S seconds.")
@seed_option
@json_option
def compare(
    reading: Reading,
    models: Sequence[Path],
    page: Path | None,
    csv: Path | None,
    markdown: Path | None,
    trace: Path | None,
    compression_paths: Sequence[Path],
    requested: Sequence[str],
    quick: bool,
    with_bands: bool | None,
    with_peers: bool,
    baseline: Path | None,
    most_growth: float | None,
    jobs: int | None,
    scheduler: str | None,
    budgets: tuple[Budget, ...] | None,
    machine: str | None,
    link: Link | None,
    points: tuple[Sizes, ...],
    time_limit_s: float,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compare all strategies on every MODEL, or on all models in a folder.

    Strategies are ranked by the height of their plans; capacities are ignored. Models are
    planned in parallel. If one fails, the others continue; exit code 1.

    With --policies, the policies that trade time for memory are compared instead: the bytes that
    each needs, the time that it adds and how long it searches. --strategy then names a policy.

    Of a range, --dim seq=1..512, it compares the plan with those of single sizes.

    Ctrl-C keeps the models that are done and the best plans so far of those under way. With a
    single model, it moves on to the next strategy. No file is written if no model could be
    compared.
    """
    _check_page_name(page)
    if budgets is not None:
        _check_without_budget(click.get_current_context())
        results = Results(as_json=as_json)
        paths = list(find_model_files(models))
        results.reserve(page, sources=paths)
        contest = PolicyContest(
            budgets, costs_of(machine, link), chosen_policies(requested, quick=quick),
            not (requested or quick) if with_bands is None else with_bands,
        )  # fmt: skip
        reading = replace(reading, limits=watched(time_limit_s))
        _compare_policies(paths, reading, contest, page, results)
        return
    if most_growth is not None and baseline is None:
        raise click.UsageError("--fail-over requires --baseline OLD.json")
    if compression_paths and page is None:
        raise click.UsageError("--compression requires --output REPORT.html")
    check_options(reading)
    strategies = tuple(
        configured(strategy, seed=seed, time_limit_s=time_limit_s)
        for strategy in _chosen(requested)
        if strategy.quick or not quick
    )
    old = {} if baseline is None else read_baseline(baseline)
    paths = list(find_model_files(models))
    compressions = [read_compression(path) for path in compression_paths]
    results = Results(as_json=as_json)
    results.reserve(page, csv, markdown, trace, sources=(*paths, *compression_paths))
    if page is not None:
        check_packages()
    is_watched = len(paths) == 1 and scheduler is None
    limits = watched(time_limit_s) if is_watched else SearchLimits(time_limit_s)
    if with_bands is None:
        with_bands = page is not None and not quick
    reading = replace(reading, limits=limits)
    tasks = [
        Task(path, each, strategies, with_peers, with_bands, points)
        for path, each in zip(paths, readings_of(reading, paths), strict=True)
    ]

    def show(each: Compared) -> None:
        if isinstance(each, FailedModel):
            complain(each.error)
            return
        if each.note is not None:
            note(f"{each.model}: {each.note}")
        if not as_json:
            console = results.console()
            console.print(name(each.source.name, "bold"), comparison_table(each), sep="\n")
            if is_watched and console.is_terminal and each.winner is not None:
                console.print(_map(each.source.problem, each.winner.plan, console))

    compared = _collected(
        compare_each(tasks, num_processes=jobs, scheduler=scheduler, observer=TERMINAL),
        tasks,
        show,
    )
    comparison = Comparison(tuple(compared))
    reports, failures = comparison.reports, comparison.failures
    changes = differences(old, reports) if baseline is not None else []
    results.show(
        _as_json(reports, failures, changes if baseline is not None else None),
        lambda console: (
            None if baseline is None else console.print(differences_table(changes, most_growth))
        ),
    )
    if reports:
        results.write(csv, lambda: as_csv(reports))
        compared_with = None if baseline is None else old
        results.write(markdown, lambda: as_markdown(reports, compared_with, most_growth))
        results.write(trace, lambda: as_trace(reports))
        command = click.get_current_context().obj
        results.write(page, lambda: as_page(comparison.models, command, compressions))
    else:
        _note_unwritten(csv, markdown, trace, page)
    wrong = any(skipped.wrong for report in reports for skipped in report.skipped)
    if _grew(changes, most_growth) or failures or wrong:
        raise click.exceptions.Exit(1)


def _check_page_name(page: Path | None) -> None:
    """Check that the name of the report is that of an HTML file."""
    if page not in (None, STANDARD_OUTPUT) and page.suffix.lower() not in _PAGE_SUFFIXES:
        raise click.UsageError(
            f"--output {page}: the report is an HTML page; give it the suffix .html"
        )


def _note_unwritten(*paths: Path | None) -> None:
    """Note the files that are not written because no model was compared."""
    unwritten = [str(path) for path in paths if path is not None]
    if unwritten:
        note(f"no model was compared, so this is not written: {', '.join(unwritten)}")


def _check_without_budget(context: click.Context) -> None:
    """Check that no option was given that a comparison of policies does not take."""
    for parameter in context.command.params:
        if parameter.name in _NOT_WITH_BUDGET and context.params.get(parameter.name):
            raise click.UsageError(f"{parameter.opts[-1]} does not go with --policies")


def _chosen(requested: Sequence[str]) -> list[Strategy]:
    """Return the strategies asked for, or all, in the order of the table."""
    wanted = {find(strategy).name for strategy in requested} or known().keys()
    return [strategy for strategy in known().values() if strategy.name in wanted]


def _collected(
    outcomes: Iterator[tuple[int, Compared]],
    tasks: Sequence[Task],
    show: Callable[[Compared], None],
) -> list[Compared]:
    """Return the outcomes in the order of the tasks; show each as soon as its turn comes.

    Ctrl-C keeps those of several that are done.
    """
    console = progress()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = console.is_terminal and len(tasks) > 1
    done: dict[int, Compared] = {}
    num_shown = 0
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        models = bar.add_task("models", total=len(tasks))
        try:
            for index, outcome in outcomes:
                done[index] = outcome
                bar.advance(models)
                while num_shown in done:
                    num_shown += 1  # first, so that Ctrl-C never shows it twice
                    show(done[num_shown - 1])
        except KeyboardInterrupt:
            if len(tasks) == 1:
                raise
    for index in range(num_shown, len(tasks)):
        model = str(tasks[index].model)
        show(done.setdefault(index, FailedModel(model, f"{model}: interrupted before its plan")))
    return [done[index] for index in range(len(tasks))]


def _map(problem: Problem, plan: Plan, console: Console) -> RenderableType:
    return memory_map.draw(problem, plan, drawing_width(console), colour=has_colour(console))


def _as_json(
    reports: Sequence[ModelReport],
    failures: Sequence[FailedModel],
    changes: Sequence[Difference] | None,
) -> dict[str, object]:
    document: dict[str, object] = {
        "models": [report.as_json() for report in reports],
        "failed": list(map(asdict, failures)),
    }
    if changes is not None:
        document["differences"] = list(map(asdict, changes))
    return document


def _grew(changes: Sequence[Difference], most: float | None) -> bool:
    """Say which models grew by more than `most`, and tell whether any did."""
    if most is None:
        return False
    grown = [change for change in changes if change.growth > most]
    for change in grown:
        complain(
            f"{change.model}: the lowest arena grew from {change.before:,} B to {change.now:,} B, "
            f"by {percent(change.growth)}; at most {percent(most)} is allowed"
        )
    if all(change.before is None or change.now is None for change in changes):
        complain("the baseline has none of these models")
        return True
    return bool(grown)


def _compare_policies(
    paths: Sequence[Path],
    reading: Reading,
    contest: PolicyContest,
    page: Path | None,
    results: Results,
) -> None:
    """Compare policies on models, and show and write the results.

    Raises:
        Exit: A model cannot be read, or a policy made a wrong program.
    """
    models, failures = compare_policies(paths, reading, contest)

    def text(console: Console) -> None:
        for model in models:
            console.print(name(model.model, "bold"), policy_tables(model), sep="\n")

    results.show(
        {"models": [model.as_json() for model in models], "failed": list(map(asdict, failures))},
        text,
    )
    if models:
        results.write(page, lambda: as_policy_page(models, click.get_current_context().obj))
    else:
        _note_unwritten(page)
    if failures or any(result.wrong for model in models for result in model.results):
        raise click.exceptions.Exit(1)
