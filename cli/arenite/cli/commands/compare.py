"""`arenite compare`: every strategy on every model."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from arenite.cli.options import (
    Reading,
    json_option,
    reading_options,
    seed_option,
    time_limit_option,
)
from arenite.cli.output import emit_json, results
from arenite.cli.render.numbers import both, duration, gap, grouped
from arenite.cli.render.tables import facts, listing
from arenite.cli.render.text import name, one_line
from arenite.cli.search import Outcome, configured, search
from arenite.planner.errors import (
    AreniteError,
    InvalidPlanError,
    MissingDependencyError,
    PlanError,
    UnsupportedProblemError,
)
from arenite.planner.plan import SharedObjects
from arenite.planner.problem import Problem
from arenite.planner.strategy import Strategy
from arenite.strategies import find, known

_DEFAULT_TIME_LIMIT_S = 5.0


@click.command()
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--strategy",
    "requested",
    metavar="NAME",
    multiple=True,
    help="Compare this one; repeatable.  [default: all]",
)
@click.option("--quick", is_flag=True, help="Leave out the strategies that search.")
@reading_options
@time_limit_option(_DEFAULT_TIME_LIMIT_S, "Seconds for each search on each model.")
@seed_option
@json_option
def compare(
    reading: Reading,
    models: Sequence[Path],
    requested: Sequence[str],
    quick: bool,
    time_limit_s: float,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run every strategy on every MODEL.

    Capacities are left aside: what counts is how low each strategy gets. Ctrl-C ends the
    search that is running and goes on with the next.
    """
    strategies = [
        configured(strategy, seed=seed, time_limit_s=time_limit_s)
        for strategy in _chosen(requested)
        if strategy.quick or not quick
    ]
    comparisons: list[dict[str, object]] = []
    failures: list[dict[str, object]] = []
    wrong = False
    for model in models:
        try:
            source = reading.read(model)
        except (AreniteError, OSError) as error:
            click.echo(one_line(f"error: {error}"), err=True)
            failures.append({"model": str(model), "error": str(error)})
            continue
        problem = dataclasses.replace(source.problem, capacity=None)
        comparison = _Comparison(problem, tuple(_attempts(strategies, problem)))
        wrong = wrong or any(attempt.wrong for attempt in comparison.attempts)
        if as_json:
            comparisons.append({"model": str(model)} | comparison.as_json())
        else:
            results().print(name(source.name, "bold"), comparison.as_table(), sep="\n")
    if as_json:
        emit_json({"models": comparisons, "failed": failures})
    if failures or wrong:
        raise click.exceptions.Exit(1)


def _chosen(requested: Sequence[str]) -> list[Strategy]:
    """Return the strategies asked for, or all, in the order of the table."""
    wanted = {find(strategy).name for strategy in requested} or known().keys()
    return [strategy for strategy in known().values() if strategy.name in wanted]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of one strategy: an outcome, or the reason why there is none."""

    strategy: Strategy
    outcome: Outcome | None
    reason: str = ""
    wrong: bool = False


def _attempts(strategies: Sequence[Strategy], problem: Problem) -> Iterator[_Attempt]:
    for strategy in strategies:
        try:
            yield _Attempt(strategy, search(strategy, problem))
        except UnsupportedProblemError as error:
            yield _Attempt(strategy, None, error.reason)
        except InvalidPlanError as error:
            yield _Attempt(strategy, None, f"made a wrong plan: {error}", wrong=True)
        except (PlanError, MissingDependencyError) as error:
            yield _Attempt(strategy, None, str(error))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What every strategy made of one problem."""

    problem: Problem
    attempts: tuple[_Attempt, ...]

    @property
    def best_bound(self) -> int:
        """The largest bound that any strategy proved."""
        proved = (each.outcome.plan.lower_bound for each in self.attempts if each.outcome)
        return max(proved, default=self.problem.lower_bound)

    @property
    def lowest(self) -> int | None:
        """The height of the winner."""
        heights = (each.outcome.plan.height for each in self.attempts if each.outcome)
        return min(heights, default=None)

    def as_json(self) -> dict[str, object]:
        """Return what `--json` says of one model."""
        made = [(each.strategy, each.outcome) for each in self.attempts if each.outcome]
        return {
            "num_records": len(self.problem.records),
            "naive": self.problem.naive,
            "lower_bound": self.problem.lower_bound,
            "best_bound": self.best_bound,
            "results": [
                {
                    "strategy": strategy.name,
                    "kind": strategy.kind.value,
                    "height": outcome.plan.height,
                    "seconds": outcome.seconds,
                    "optimal": outcome.plan.height == self.best_bound,
                    "interrupted": outcome.interrupted,
                    "objects": _objects_as_json(outcome.plan.objects),
                }
                for strategy, outcome in made
            ],
            "skipped": [
                {"strategy": each.strategy.name, "reason": each.reason}
                for each in self.attempts
                if each.outcome is None
            ],
        }

    def as_table(self) -> RenderableType:
        """Return the table of one model and the reasons for its gaps."""
        lines: list[RenderableType] = [
            facts(self._facts()),
            Text(),
            listing(
                ("", "strategy", "kind", "height, B>", "gap>", "objects' gap>", "time>"),
                map(self._row, self.attempts),
            ),
        ]
        lines += [
            Text(f"{each.strategy.name}: {one_line(each.reason)}", "dim")
            for each in self.attempts
            if each.outcome is None
        ]
        return Group(*lines, Text())

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "records", grouped(len(self.problem.records))
        yield "no reuse", both(self.problem.naive)
        yield "lower bound", both(self.problem.lower_bound)
        if self.best_bound > self.problem.lower_bound:
            yield "proved by search", both(self.best_bound)
        for attempt in self.attempts:
            if attempt.outcome and (objects := attempt.outcome.plan.objects):
                yield "of shared objects", both(objects.lower_bound)
                break

    def _row(self, attempt: _Attempt) -> tuple[RenderableType, ...]:
        strategy, outcome = attempt.strategy, attempt.outcome
        if outcome is None:
            return "", name(strategy.name), strategy.kind.value, "-", "-", "", "-"
        plan = outcome.plan
        wins = plan.height == self.lowest
        objects = plan.objects
        style = "bold green" if wins else ""
        return (
            Text("*" if wins else "", style),
            name(strategy.name, style),
            strategy.kind.value,
            Text(grouped(plan.height), style),
            "optimal" if plan.height == self.best_bound else gap(plan.height, self.best_bound),
            gap(objects.total, objects.lower_bound) if objects else "",
            duration(outcome.seconds) + (" !" if outcome.interrupted else ""),
        )


def _objects_as_json(objects: SharedObjects | None) -> dict[str, int] | None:
    if objects is None:
        return None
    return {
        "number": len(objects.sizes),
        "total": objects.total,
        "lower_bound": objects.lower_bound,
    }
