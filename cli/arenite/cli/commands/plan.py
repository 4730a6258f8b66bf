"""`arenite plan`: place the records of one model and write the plan file."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console, RenderableType

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.console.streams import drawing_width, has_colour
from arenite.cli.options.common import (
    capacity_option,
    json_option,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.options.model import memories_option, reading_options
from arenite.cli.options.sections import MODEL, SEARCH, SectionedCommand
from arenite.cli.render import memory_map
from arenite.cli.render.facts import (
    facts,
    held_as_json,
    held_row,
    memories_as_json,
    memory_rows,
    name,
    range_as_json,
    range_rows,
    spread_as_json,
    spread_row,
)
from arenite.pipeline.base import Reading, both, configured, duration, gap, percent, plural
from arenite.pipeline.making import PlannedModel, plan_model
from arenite.pipeline.targets import GENERIC, Chosen
from arenite.planner import PlanFile, Source
from arenite.planner.programs import CostedMemory
from arenite.strategies import find


@click.command(cls=SectionedCommand, sections={**MODEL, **SEARCH})
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PLAN.json",
    help="Write the plan to a file.",
)
@strategy_option
@reading_options
@capacity_option
@memories_option
@time_limit_option()
@seed_option
@json_option
@click.option(
    "--map/--no-map",
    "with_map",
    default=None,
    help="Draw the memory map.  [default: only on a terminal]",
)
def plan(
    reading: Reading,
    model: Path,
    output: Path | None,
    requested: str,
    capacity: int | None,
    memories: tuple[CostedMemory, ...],
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
    with_map: bool | None,
) -> None:
    """Plan the memory of MODEL.

    Places all tensors in one arena that is as small as possible. The plan is for our own
    runtime ('arenite build MODEL --plan PLAN.json') unless it cannot run the model or
    --target names another.

    Ctrl-C stops a search and keeps the best plan so far.
    """
    if as_json and with_map:
        raise click.UsageError("--map and --json exclude each other")
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model,))
    planned = plan_model(
        model, replace(reading, limits=watched(time_limit_s)), strategy=strategy,
        capacity=capacity, memories=memories,
    )  # fmt: skip
    chosen, source, plan_file = planned.chosen, planned.source, planned.file
    results.write(output, plan_file.to_bytes)

    def text(console: Console) -> None:
        console.print(name(source.name, "bold"), soft_wrap=True)
        console.print(_summary(planned, requested, output, chosen))
        if console.is_terminal if with_map is None else with_map:
            console.print()
            console.print(_map(plan_file, console))

    results.show(
        _as_json(model, source, planned)
        | {
            "order": chosen.order_name,
            "requested": requested,
            "fallback": chosen.fallback,
            "held": planned.held and held_as_json(planned.held),
            "output": output and str(output),
        },
        text,
    )


def _as_json(model: Path, source: Source, planned: PlannedModel) -> dict[str, object]:
    plan_file, outcome = planned.file, planned.outcome
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
        "activations": plan_file.model.activations or None,
        "cache": plan_file.model.cache or None,
        "num_operators": len(problem.steps),
        "num_records": len(problem.records),
        "naive": problem.naive,
        "lower_bound": plan.lower_bound,
        "height": plan.height,
        "gap": plan.gap,
        "optimal": plan.optimal,
        "memories": memories_as_json(problem, plan),
        **range_as_json(problem, plan, plan_file.dimensions),
        "spread": planned.spread and spread_as_json(planned.spread),
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
    }


def _summary(
    planned: PlannedModel, requested: str, output: Path | None, chosen: Chosen
) -> RenderableType:
    plan_file, outcome = planned.file, planned.outcome
    problem, plan = plan_file.problem, plan_file.plan
    # Another order may need less: the bound is that of this one.
    is_given = chosen.source.program is not None and chosen.order_name == "given"
    distance = (
        f"reached: optimal{' in the given order' if is_given else ''}"
        if plan.optimal
        else f"the height is {gap(plan.height, plan.lower_bound)} above"
    )
    maker = plan.strategy if plan.strategy == requested else f"{plan.strategy}, of {requested}"
    stopped = ", interrupted" if outcome.interrupted else ""
    whose = "as written" if plan_file.target == GENERIC.name else f"for {plan_file.target}"
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
            (
                "no reuse",
                f"{both(problem.naive)}: {percent(saved)} saved, {times:.3g} times smaller",
            )
        )
    rows += range_rows(problem, plan, plan_file.dimensions)
    rows += memory_rows(problem, plan)
    if planned.spread is not None:
        rows.append(spread_row(planned.spread))
    elif problem.capacity is not None:
        free = problem.capacity - plan.height
        rows.append(("capacity", f"{both(problem.capacity)}, {both(free)} free"))
    if planned.held is not None:
        rows.append(held_row(planned.held))
    rows.append(("strategy", f"{maker}, {duration(outcome.seconds)}{stopped}"))
    if output is not None:
        rows.append(("written", name(str(output))))
    if plan_file.dimensions and chosen.source.program is not None:
        rows += [("note", each) for each in chosen.source.program.notes]
    return facts(rows)


def _map(plan_file: PlanFile, console: Console) -> RenderableType:
    return memory_map.draw(
        plan_file.problem, plan_file.plan, drawing_width(console), colour=has_colour(console)
    )
