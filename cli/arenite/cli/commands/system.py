"""`arenite system`: several models in one arena."""

from pathlib import Path

import click
from rich.console import Console, RenderableType

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import (
    capacity_option,
    json_option,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.options.model import memories_option
from arenite.cli.options.sections import SEARCH, SectionedCommand
from arenite.cli.options.types import PROGRAM_FILE
from arenite.cli.render.facts import (
    arena_row,
    facts,
    held_as_json,
    held_row,
    memories_as_json,
    memory_rows,
    name,
    plan_as_json,
)
from arenite.pipeline.base import both, configured, percent, plural
from arenite.pipeline.systems import PlannedSystem, plan_system
from arenite.planner.programs import CostedMemory
from arenite.runtime import SessionMemory
from arenite.strategies import find


@click.command(cls=SectionedCommand, sections=SEARCH)
@click.argument("description", metavar="SYSTEM.toml", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=PROGRAM_FILE, metavar="SYSTEM.arena",
    help="Program file to write.",
)  # fmt: skip
@strategy_option
@capacity_option
@memories_option
@time_limit_option()
@seed_option
@json_option
def system(
    description: Path,
    output: Path | None,
    requested: str,
    capacity: int | None,
    memories: tuple[CostedMemory, ...],
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Plan several models in one arena, and build them into one file.

    SYSTEM.toml names the models, the order in which they run, which outputs are inputs of
    others, and which stay. What it allows is checked for every order. `arenite verify` checks the
    file, `arenite run` runs all models once, arenite.System runs them one by one.
    """
    results = Results(as_json=as_json)
    results.reserve(output, sources=(description,))
    planned = plan_system(
        description,
        strategy=configured(find(requested), seed=seed, time_limit_s=time_limit_s),
        capacity=capacity,
        memories=memories,
        limits=watched(time_limit_s),
    )
    held = None
    if output is not None:
        with results.file(output) as file:
            held = planned.write(file)
    results.show(
        _as_json(planned, description, output, held),
        lambda console: _show(console, planned, description, output, held),
    )


def _as_json(
    planned: PlannedSystem, description: Path, output: Path | None, held: SessionMemory | None
) -> dict[str, object]:
    plan, problem = planned.plan, planned.problem
    return {
        "system": str(description),
        "models": dict(planned.alone),
        **plan_as_json(plan),
        "num_operators": len(problem.steps),
        "num_records": len(problem.records),
        "sum": sum(planned.alone.values()),
        "largest": max(planned.alone.values()),
        "memories": memories_as_json(problem, plan),
        "held": held and held_as_json(held),
        "seconds": planned.built.outcome.seconds,
        "output": None if output is None else str(output),
    }


def _show(
    console: Console,
    planned: PlannedSystem,
    description: Path,
    output: Path | None,
    held: SessionMemory | None,
) -> None:
    console.print(name(description.name, "bold"), soft_wrap=True)
    plan, problem = planned.plan, planned.problem
    total, largest = sum(planned.alone.values()), max(planned.alone.values())
    saved = 1 - plan.height / total if total else 0.0
    rows: list[tuple[str, RenderableType]] = [
        ("models", ", ".join(f"{each} {both(size)}" for each, size in planned.alone.items())),
        arena_row(plan),
        ("apart", f"{both(total)} in arenas of their own: {percent(saved)} saved"),
        ("largest", f"{both(largest)} for the largest model alone"),
        *memory_rows(problem, plan),
        ("planned", f"{plural(len(problem.records), 'record')} by {plan.strategy}"),
    ]
    rows += [("note", each) for each in planned.built.compiled.program.notes]
    if held is not None:
        rows.append(held_row(held))
    if output is not None:
        rows.append(("written", name(str(output))))
    console.print(facts(rows))
