"""Every strategy on every model: here, a process for each, or on a cluster."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from arenite.pipeline.base.observing import SILENT, Observer
from arenite.pipeline.base.placing import place
from arenite.pipeline.base.ranges import Touched, along, completed, problem_at
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.base.text import both
from arenite.pipeline.comparison.peers import ask_peers
from arenite.pipeline.comparison.workers import (
    Crash,
    WorkerObserver,
    each_in_a_process,
    each_on_cluster,
)
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.report.frontier import Frontier
from arenite.pipeline.report.page import as_page
from arenite.pipeline.report.results import (
    AtSizes,
    FailedModel,
    ModelReport,
    PeerResult,
    SkippedStrategy,
    StrategyResult,
)
from arenite.pipeline.report.tables import as_csv
from arenite.pipeline.targets.choice import ARENITE, Chosen, choose_target
from arenite.planner import AreniteError, Strategy
from arenite.planner.errors import (
    FailedStrategyError,
    InvalidPlanError,
    MissingDependencyError,
    PlanError,
    UnsupportedProblemError,
)
from arenite.planner.files import write_atomically
from arenite.planner.sizes import Sizes

_Outcome = TypeVar("_Outcome")

_SEARCHES = 10
"""Of a frontier: the regions of each of its programs, and their plans."""


Compared: TypeAlias = ModelReport | FailedModel


@dataclass(frozen=True, slots=True)
class Task:
    """One model to compare.

    Attributes:
        with_peers: Whether other tools are asked as well.
        with_bands: Whether its frontier of memory against time is asked for.
        sizes: Sizes to plan alone beside the plan for a range; some of the range by default.
    """

    model: Path
    reading: Reading
    strategies: tuple[Strategy, ...]
    with_peers: bool = False
    with_bands: bool = False
    sizes: tuple[Sizes, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A task whose model was read: all that planning needs, without the file."""

    task: Task
    chosen: Chosen
    peers: tuple[PeerResult, ...]
    frontier: Frontier | None


def compare_model(task: Task) -> Compared:
    """Return the plans of the strategies, or why the model cannot be planned."""
    read = read_model(task)
    return read if isinstance(read, FailedModel) else plan_model(read)


def read_model(task: Task) -> ReadTask | FailedModel:
    """Return the task with its model read and, if wanted, given to the peers."""
    try:
        chosen = choose_target(task.reading, task.model)
        frontier = _frontier(task) if task.with_bands and chosen.target is ARENITE else None
        for each in task.sizes:
            completed(each, chosen.source.dimensions)
    except (AreniteError, OSError) as error:
        return FailedModel(str(task.model), str(error))
    source = chosen.source
    peers = tuple(ask_peers(task.model, task.reading, source)) if task.with_peers else ()
    boundless = replace(source, problem=source.problem.with_capacity(None))
    return ReadTask(task, replace(chosen, source=boundless), peers, frontier)


def _frontier(task: Task) -> Frontier | None:
    """Return the arenas in bands of rows of a model for our runtime; None if not smaller."""
    limits = task.reading.limits
    if limits.time_limit_s is not None:
        limits = replace(limits, time_limit_s=_SEARCHES * limits.time_limit_s)
    fitting = Fitting(task.model, replace(task.reading, limits=limits))
    fits = fitting.frontier()
    return Frontier.of(fits, fitting.machine.words) if len(fits) > 1 else None


def plan_model(read: ReadTask) -> ModelReport:
    """Run the strategies of the task."""
    chosen = read.chosen
    results: list[StrategyResult] = []
    skipped: list[SkippedStrategy] = []
    for strategy in read.task.strategies:
        try:
            outcome = place(strategy, chosen.source.problem, read.task.reading.limits)
        except UnsupportedProblemError as error:
            skipped.append(SkippedStrategy(strategy.name, strategy.kind, error.reason))
        except (InvalidPlanError, FailedStrategyError) as error:
            skipped.append(SkippedStrategy(strategy.name, strategy.kind, str(error), wrong=True))
        except (PlanError, MissingDependencyError) as error:
            skipped.append(SkippedStrategy(strategy.name, strategy.kind, str(error)))
        else:
            results.append(
                StrategyResult(
                    strategy.name,
                    strategy.kind,
                    outcome.plan,
                    outcome.seconds,
                    outcome.interrupted,
                )
            )
    model = str(read.task.model)
    report = ModelReport(
        model, chosen.source, tuple(results), tuple(skipped), read.peers,
        chosen.target.name, chosen.order_name, chosen.phrase, chosen.note, read.frontier,
    )  # fmt: skip
    return replace(report, sizes=tuple(_at_sizes(read, report)))


_NUM_SIZES = 5
"""Sizes of a range that are planned alone, unless the user names them."""


def _at_sizes(read: ReadTask, report: ModelReport) -> Iterator[AtSizes]:
    """Yield what sizes of a range take, by the lowest plan for all and by plans of their own."""
    source, winner = read.chosen.source, report.winner
    if not source.dimensions or winner is None:
        return
    given = [completed(each, source.dimensions) for each in read.task.sizes]
    for sizes in given or along(source.dimensions, _NUM_SIZES):
        problem = problem_at(source.problem, sizes)
        heights: dict[str, int] = {}
        for strategy in read.task.strategies:
            with suppress(PlanError, MissingDependencyError):
                outcome = place(strategy, problem, read.task.reading.limits)
                heights[strategy.name] = outcome.plan.height
        touched = Touched.of(source.problem, winner.plan, sizes)
        yield AtSizes(touched, problem.lower_bound, heights)


def compare_in_processes(
    tasks: Sequence[Task], num_processes: int, observer: Observer = SILENT
) -> Iterator[tuple[int, Compared]]:
    """Yield the index of each task and its outcome, as they are done.

    The observer may stop it; the models that are done are kept, and so are the best plans so far
    of those under way.
    """
    stoppable = [replace(task, reading=_stoppable(task.reading)) for task in tasks]
    with observer.searching("compare", "comparison") as search:
        done = each_in_a_process(compare_model, stoppable, num_processes, search.should_stop)
        for index, outcome in done:
            yield index, _survived(tasks[index], outcome)


def _stoppable(reading: Reading) -> Reading:
    """Return a reading whose searches the caller of a worker stops."""
    return replace(reading, limits=replace(reading.limits, observer=WorkerObserver()))


def compare_on_cluster(
    tasks: Sequence[Task], num_processes: int, scheduler: str
) -> Iterator[tuple[int, Compared]]:
    """Read the models here, plan them on the cluster; yield as `compare_in_processes`.

    The workers need Arenite but not the files: they get the graph without weights.

    Raises:
        ClusterError: The scheduler cannot be reached.
        MissingDependencyError: The package is absent.
    """
    failed: list[tuple[int, FailedModel]] = []

    def readable() -> Iterator[tuple[int, ReadTask]]:
        for index, outcome in each_in_a_process(read_model, tasks, num_processes):
            read = _survived(tasks[index], outcome)
            if isinstance(read, FailedModel):
                failed.append((index, read))
            else:
                yield index, read

    for index, outcome in each_on_cluster(scheduler, plan_model, readable()):
        yield index, _survived(tasks[index], outcome)
    yield from failed


def _survived(task: Task, outcome: _Outcome | FailedModel | Crash) -> _Outcome | FailedModel:
    if isinstance(outcome, Crash):
        return FailedModel(str(task.model), f"{task.model}: {outcome.reason}")
    return outcome


def compare_each(
    tasks: Sequence[Task],
    *,
    num_processes: int | None = None,
    scheduler: str | None = None,
    observer: Observer = SILENT,
) -> Iterator[tuple[int, Compared]]:
    """Yield the index of each task and its outcome, as they are done.

    Args:
        tasks: Models to compare; several are planned at once, in processes of their own.
        num_processes: Most processes at once; by default as many as there are processors.
        scheduler: Address of a Dask scheduler to plan on; None for this machine.
        observer: May stop it; the models that are done are kept.
    """
    limit = min(num_processes or os.cpu_count() or 1, len(tasks))
    if scheduler is not None:
        return compare_on_cluster(tasks, limit, scheduler)
    if len(tasks) == 1:
        return ((index, compare_model(task)) for index, task in enumerate(tasks))
    return compare_in_processes(tasks, limit, observer)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Models and the plans of every strategy.

    Attributes:
        models: In the order in which they were given.
    """

    models: tuple[Compared, ...]

    @property
    def reports(self) -> list[ModelReport]:
        """The models that could be compared."""
        return [each for each in self.models if isinstance(each, ModelReport)]

    @property
    def failures(self) -> list[FailedModel]:
        """The models that could not."""
        return [each for each in self.models if isinstance(each, FailedModel)]

    def to_html(self, path: Path | str) -> None:
        """Write the HTML report.

        Raises:
            MissingDependencyError: A package that draws the page is absent.
            OutputError: The file cannot be written.
        """
        command = ("compare", *(each.model for each in self.models))
        _write(path, as_page(self.models, command))

    def to_csv(self, path: Path | str) -> None:
        """Write a table of all results as CSV.

        Raises:
            OutputError: The file cannot be written.
        """
        _write(path, as_csv(self.reports))

    def __str__(self) -> str:
        """Return a summary for people: a line a model."""
        lines = []
        for each in self.models:
            if isinstance(each, FailedModel):
                lines.append(each.error)
            elif each.winner is not None:
                lowest = f"{both(each.winner.height)} by {each.winner.strategy}"
                lines.append(f"{each.source.name}: {lowest}, {each.phrase}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from arenite.pipeline.report.notebook import comparison_as_html

        return comparison_as_html(self.reports)


def _write(path: Path | str, text: str) -> None:
    write_atomically(Path(path), (text.encode(),))
