"""`arenite MODEL`: the memory of a model with and without reuse, and commands to try next."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console, RenderableType

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.console.streams import note
from arenite.cli.options.common import json_option
from arenite.cli.options.model import reading_options
from arenite.cli.options.sections import MODEL, SectionedCommand
from arenite.cli.render.facts import facts, name
from arenite.pipeline.base import Reading, both, distance, percent, place, printable
from arenite.pipeline.targets import ARENITE, Chosen, choose_target
from arenite.planner import Plan, diagnose
from arenite.strategies import find


@click.command(cls=SectionedCommand, sections=MODEL)
@click.argument("model", type=click.Path(path_type=Path))
@reading_options
@json_option
@click.pass_context
def glance(context: click.Context, reading: Reading, model: Path, as_json: bool) -> None:
    """Plan MODEL; show its memory with and without reuse, and commands to try next."""
    chosen = choose_target(reading, model)
    source = chosen.source
    plan = place(find("best"), source.problem, watched()).plan
    binds = ""
    if source.program is not None and source.problem.records:
        binds = diagnose(source.program, source.problem).advice
    commands = _next(chosen, model, _options(context, model))
    if chosen.note is not None:
        note(chosen.note)

    def text(console: Console) -> None:
        console.print(name(source.name, "bold"), soft_wrap=True)
        console.print(facts(_rows(chosen, plan)))
        if binds:
            console.print(printable(binds))
        console.print("\nTry next:")
        for each in commands:
            console.print(f"    {printable(each)}", soft_wrap=True)

    Results(as_json=as_json).show(
        {
            "model": str(model),
            "target": chosen.target.name,
            "order": chosen.order_name,
            "fallback": chosen.fallback,
            "naive": source.problem.naive,
            "lower_bound": plan.lower_bound,
            "height": plan.height,
            "optimal": plan.optimal,
            "binds": binds,
            "next": commands,
        },
        text,
    )


def _rows(chosen: Chosen, plan: Plan) -> list[tuple[str, RenderableType]]:
    naive = chosen.source.problem.naive
    rows: list[tuple[str, RenderableType]] = [("needs", f"{both(naive)} without reuse of memory")]
    if plan.height:
        less = f"{percent(1 - plan.height / naive)} less" if plan.height < naive else "as much"
        saved = f"{less}, {distance(plan)}"
        rows.append(("could need", f"{both(plan.height)} {chosen.phrase}: {saved}"))
    return rows


def _options(context: click.Context, model: Path) -> list[str]:
    """Return the user's own options, for the commands to try next."""
    words = list(context.obj or ())
    at = words.index(str(model)) if str(model) in words else len(words)
    return [word for word in words[at + 1 :] if word != "--json"]


def _next(chosen: Chosen, model: Path, options: Sequence[str]) -> list[str]:
    first = "compare" if chosen.source.program is None else "inspect"
    second, suffix = "plan", ".plan.json"
    if chosen.target is ARENITE:
        second, suffix = "build", ".arena"
    output = model.with_suffix(suffix).name
    return [
        shlex.join(("arenite", first, str(model), *options)),
        shlex.join(("arenite", second, str(model), *options, "-o", output)),
    ]
