"""`arenite compare`: every strategy on every model."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from arenite.cli.commands.compare.baseline import Difference, differences, read_baseline
from arenite.cli.commands.compare.comparing import (
    Compared,
    Task,
    compare_in_processes,
    compare_model,
    compare_on_cluster,
)
from arenite.cli.commands.compare.model_files import model_files
from arenite.cli.commands.compare.tables import comparison_table, differences_table
from arenite.cli.console.output import (
    check_destination,
    drawing_width,
    emit_json,
    has_colour,
    progress,
    results,
    write_result,
)
from arenite.cli.options.shared import (
    PercentType,
    Reading,
    json_option,
    reading_options,
    seed_option,
    time_limit_option,
)
from arenite.cli.planning.search import configured
from arenite.cli.render import memory_map
from arenite.cli.render.numbers import percent
from arenite.cli.render.text import name, one_line
from arenite.cli.report.compression import CompressionResult, read_compression
from arenite.cli.report.tables import as_csv, as_markdown
from arenite.cli.report.trace import as_trace
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.report import FailedModel, ModelReport
from arenite.planner.strategy import Strategy
from arenite.strategies import find, known

_DEFAULT_TIME_LIMIT_S = 5.0
_FILE = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the comparison is written, as far as it is."""

    page: Path | None
    csv: Path | None
    markdown: Path | None
    trace: Path | None
    compressions: Sequence[CompressionResult]

    def check(self, *sources: Path) -> None:
        """Return if all can be written; asked before the long work starts.

        Raises:
            OutputError: One cannot.
            MissingDependencyError: What draws the page is absent.
        """
        for path in (self.page, self.csv, self.markdown, self.trace):
            if path is not None:
                check_destination(path, *sources)
        if self.page is not None:
            from arenite.cli.report.page import check_packages

            check_packages()

    def write(self, compared: Sequence[Compared]) -> None:
        """Write those that are wanted.

        Raises:
            OutputError: One cannot be written.
        """
        reports = [each for each in compared if isinstance(each, ModelReport)]
        if self.csv is not None:
            write_result(self.csv, as_csv(reports))
        if self.markdown is not None:
            write_result(self.markdown, as_markdown(reports))
        if self.trace is not None:
            write_result(self.trace, as_trace(reports))
        if self.page is not None:
            from arenite.cli.report.page import as_page

            command = click.get_current_context().obj
            write_result(self.page, as_page(compared, command, self.compressions))


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=_FILE)
@click.option("-o", "--output", "page", type=_FILE, metavar="REPORT.html", help="Write a page.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write a table for programs.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write a table for pull requests.")
@click.option(
    "--trace", type=_FILE, metavar="FILE", help="Write the lowest plans as a Perfetto trace."
)
@click.option(
    "--compression", "compression_paths", type=_FILE, multiple=True, metavar="RESULT.json",
    help="Show on the page what `compress --json` said of a model; repeatable.",
)  # fmt: skip
@click.option(
    "--strategy",
    "requested",
    metavar="NAME",
    multiple=True,
    help="Compare this one; repeatable.  [default: all]",
)
@click.option("--quick", is_flag=True, help="Leave out the strategies that search.")
@click.option("--peers", "with_peers", is_flag=True, help="Ask other tools that are installed.")
@click.option(
    "--baseline", type=_FILE, metavar="OLD.json", help="Show what changed since this --json."
)
@click.option(
    "--fail-over",
    "most_growth",
    type=PercentType(),
    metavar="PERCENT",
    help="Exit 1 if a model's lowest arena grew by more, such as 2%; needs --baseline.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Models at a time.  [default: one a processor]",
)
@click.option("--scheduler", metavar="ADDRESS", help="Plan on the Dask cluster of this scheduler.")
@reading_options
@time_limit_option(_DEFAULT_TIME_LIMIT_S, "Seconds for each search on each model.")
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
    with_peers: bool,
    baseline: Path | None,
    most_growth: float | None,
    jobs: int | None,
    scheduler: str | None,
    time_limit_s: float,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run every strategy on every MODEL; a folder stands for the models in and below it.

    Capacities are left aside: what counts is how low each strategy gets. Several models run
    in a process each, and one that fails does not stop the others: the exit code is then 1.
    Ctrl-C keeps the models that are done; with one model it ends the search that is running
    and goes on with the next.
    """
    if most_growth is not None and baseline is None:
        raise click.UsageError("--fail-over needs --baseline OLD.json")
    if compression_paths and page is None:
        raise click.UsageError("--compression needs --output REPORT.html")
    reading.check()
    strategies = tuple(
        configured(strategy, seed=seed, time_limit_s=time_limit_s)
        for strategy in _chosen(requested)
        if strategy.quick or not quick
    )
    old = {} if baseline is None else read_baseline(baseline)
    paths = list(model_files(models))
    compressions = [read_compression(path) for path in compression_paths]
    files = _Files(page, csv, markdown, trace, compressions)
    files.check(*paths, *compression_paths)
    watched = len(paths) == 1 and scheduler is None
    reading = replace(reading, time_limit_s=time_limit_s)
    tasks = [Task(path, reading, strategies, with_peers, watched, time_limit_s) for path in paths]

    def show(each: Compared) -> None:
        if isinstance(each, FailedModel):
            click.echo(one_line(f"error: {each.error}"), err=True)
        elif not as_json:
            console = results()
            console.print(name(each.source.name, "bold"), comparison_table(each), sep="\n")
            if watched and console.is_terminal and each.winner is not None:
                console.print(_map(each.source.problem, each.winner.plan))

    compared = _collected(_run(tasks, jobs, scheduler), tasks, show)
    reports = [each for each in compared if isinstance(each, ModelReport)]
    failures = [each for each in compared if isinstance(each, FailedModel)]
    changes = differences(old, reports) if baseline is not None else []
    if as_json:
        emit_json(_as_json(reports, failures, changes if baseline is not None else None))
    elif baseline is not None:
        results().print(differences_table(changes, most_growth))
    files.write(compared)
    wrong = any(skipped.wrong for report in reports for skipped in report.skipped)
    if _grew(changes, most_growth) or failures or wrong:
        raise click.exceptions.Exit(1)


def _chosen(requested: Sequence[str]) -> list[Strategy]:
    """Return the strategies asked for, or all, in the order of the table."""
    wanted = {find(strategy).name for strategy in requested} or known().keys()
    return [strategy for strategy in known().values() if strategy.name in wanted]


def _run(
    tasks: Sequence[Task], jobs: int | None, scheduler: str | None
) -> Iterator[tuple[int, Compared]]:
    num_processes = min(jobs or os.cpu_count() or 1, len(tasks))
    if scheduler is not None:
        return compare_on_cluster(tasks, num_processes, scheduler)
    if len(tasks) == 1:
        return ((index, compare_model(task)) for index, task in enumerate(tasks))
    return compare_in_processes(tasks, num_processes)


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


def _map(problem: Problem, plan: Plan) -> RenderableType:
    console = results()
    return memory_map.draw(problem, plan, drawing_width(console), colour=has_colour(console))


def _as_json(
    reports: Sequence[ModelReport],
    failures: Sequence[FailedModel],
    changes: Sequence[Difference] | None,
) -> dict[str, object]:
    document: dict[str, object] = {
        "models": [report.as_json() for report in reports],
        "failed": [{"model": each.model, "error": each.error} for each in failures],
    }
    if changes is not None:
        document["differences"] = [
            {"model": each.model, "before": each.before, "now": each.now} for each in changes
        ]
    return document


def _grew(changes: Sequence[Difference], most: float | None) -> bool:
    """Say which models grew by more than `most`, and tell whether any did."""
    if most is None:
        return False
    grown = [change for change in changes if change.growth > most]
    for change in grown:
        click.echo(
            one_line(
                f"error: {change.model}: the lowest arena grew from {change.before} B to "
                f"{change.now} B, by {percent(change.growth)}; allowed are {percent(most)}"
            ),
            err=True,
        )
    if all(change.before is None or change.now is None for change in changes):
        click.echo("error: the baseline has none of these models", err=True)
        return True
    return bool(grown)
