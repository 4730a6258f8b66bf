"""`arenite plan`: place the records of one model and write the plan file."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console, RenderableType

from arenite.cli.console.output import (
    check_destination,
    drawing_width,
    emit_json,
    has_colour,
    note,
    results,
)
from arenite.cli.options.shared import (
    Reading,
    capacity_option,
    json_option,
    open_reading_options,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.planning.search import Outcome, check_bound, check_capacity, configured, search
from arenite.cli.render import memory_map
from arenite.cli.render.numbers import both, duration, gap, percent, plural
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name
from arenite.cli.targets.choice import Settled, settle
from arenite.cli.targets.table import GENERIC
from arenite.planner import planfile
from arenite.planner.liveness import DEFAULT_ALIGNMENT
from arenite.planner.planfile import ModelReference, PlanFile
from arenite.planner.source import Source
from arenite.strategies import find


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PLAN.json",
    help="Write the plan file.",
)
@strategy_option
@open_reading_options
@capacity_option
@time_limit_option(None, "Seconds that each search, of an order or a placement, may take.")
@seed_option
@json_option
@click.option(
    "--map/--no-map",
    "with_map",
    default=None,
    help="Draw the memory map.  [default: on a terminal]",
)
def plan(
    reading: Reading,
    model: Path,
    output: Path | None,
    requested: str,
    capacity: int | None,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
    with_map: bool | None,
) -> None:
    """Place the records of MODEL in one arena.

    The plan is for our runtime, `arenite run MODEL --plan PLAN.json`, unless it cannot run
    the model or --target names another.

    Ctrl-C during a search keeps the best plan so far.
    """
    if as_json and with_map:
        raise click.UsageError("--map draws for people; leave out --json")
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    reading = replace(reading, time_limit_s=time_limit_s)
    if output is not None:
        check_destination(output, model)
    settled = settle(reading, model, capacity)
    source, problem = settled.source, settled.source.problem
    if settled.reason is not None:
        note(f"planned as written, with --target {settled.target}: {settled.reason}")
    check_bound(problem)
    outcome = search(strategy, problem, time_limit_s=time_limit_s)
    check_capacity(problem.capacity, outcome, requested)
    plan_file = _plan_file(settled, outcome)
    if output is not None:
        planfile.write(output, plan_file)
    if as_json:
        emit_json(
            _as_json(model, source, plan_file, outcome)
            | {
                "order": reading.order_name,
                "requested": requested,
                "fallback": settled.reason,
                "output": output and str(output),
            }
        )
        return
    console = results()
    console.print(name(source.name, "bold"), soft_wrap=True)
    console.print(_summary(plan_file, outcome, requested, output))
    if console.is_terminal if with_map is None else with_map:
        console.print()
        console.print(_map(plan_file, console))


def _plan_file(settled: Settled, outcome: Outcome) -> PlanFile:
    reading, source = settled.reading, settled.source
    alignments = (record.alignment for record in source.problem.records)
    return PlanFile(
        ModelReference(
            source.name,
            source.digest,
            reading.dims,
            reading.shapes,
            "" if reading.weight_budget is None else str(reading.weight_budget),
        ),
        settled.target,
        reading.boundary,
        reading.alignment or min(alignments, default=DEFAULT_ALIGNMENT),
        reading.aliases,
        source.problem,
        outcome.plan,
    )


def _as_json(
    model: Path, source: Source, plan_file: PlanFile, outcome: Outcome
) -> dict[str, object]:
    problem, plan = plan_file.problem, plan_file.plan
    return {
        "model": str(model),
        "digest": source.digest,
        "target": plan_file.target,
        "strategy": plan.strategy,
        "parameters": dict(plan.parameters),
        "boundary": plan_file.boundary.value,
        "alignment": plan_file.alignment,
        "aliases": [kind.value for kind in plan_file.aliases],
        "capacity": problem.capacity,
        "weight_budget": plan_file.model.weight_budget or None,
        "num_operators": len(problem.steps),
        "num_records": len(problem.records),
        "naive": problem.naive,
        "lower_bound": plan.lower_bound,
        "height": plan.height,
        "gap": plan.gap,
        "optimal": plan.optimal,
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
    }


def _summary(
    plan_file: PlanFile, outcome: Outcome, requested: str, output: Path | None
) -> RenderableType:
    problem, plan = plan_file.problem, plan_file.plan
    distance = (
        "reached: optimal"
        if plan.optimal
        else f"the height is {gap(plan.height, plan.lower_bound)} above"
    )
    maker = plan.strategy if plan.strategy == requested else f"{plan.strategy}, of {requested}"
    stopped = ", interrupted" if outcome.interrupted else ""
    whose = "as written" if plan_file.target == GENERIC else f"for {plan_file.target}"
    rows: list[tuple[str, RenderableType]] = [
        (
            "planned",
            f"{plural(len(problem.records), 'record')} over "
            f"{plural(problem.num_steps, 'step')} {whose}, aligned to {plan_file.alignment}",
        ),
        ("height", both(plan.height)),
        ("lower bound", f"{both(plan.lower_bound)}, {distance}"),
    ]
    if plan.height:
        saved, times = 1 - plan.height / problem.naive, problem.naive / plan.height
        rows.append(
            ("no reuse", f"{both(problem.naive)}: {percent(saved)} saved, {times:.3g} times less")
        )
    if problem.capacity is not None:
        free = problem.capacity - plan.height
        rows.append(("capacity", f"{both(problem.capacity)}, {both(free)} free"))
    rows.append(("strategy", f"{maker}, {duration(outcome.seconds)}{stopped}"))
    if output is not None:
        rows.append(("written", name(str(output))))
    return facts(rows)


def _map(plan_file: PlanFile, console: Console) -> RenderableType:
    return memory_map.draw(
        plan_file.problem, plan_file.plan, drawing_width(console), colour=has_colour(console)
    )
