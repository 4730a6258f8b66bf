"""`arenite verify`: check a plan, on its own or against its model."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option
from arenite.cli.options.model import sizes_options
from arenite.pipeline.base import (
    Reading,
    both,
    dimensions_as_json,
    plural,
    printable,
    reading_of,
    spread_as,
)
from arenite.pipeline.making import SUFFIX, ProgramFile, session_by_plan
from arenite.pipeline.targets import TARGETS, Compiled
from arenite.planner import PlanFile, planfile
from arenite.planner.errors import OrderError, about_file, needing
from arenite.planner.files import model_digest
from arenite.planner.planfile import StaleRecordsError, WrongTypeError


@click.command()
@click.argument("plan_path", metavar="PLAN", type=click.Path(path_type=Path))
@click.argument("model", required=False, type=click.Path(path_type=Path))
@sizes_options
@json_option
def verify(stated: Reading, plan_path: Path, model: Path | None, as_json: bool) -> None:
    """Check a plan, on its own or against MODEL.

    PLAN is a plan file, a program file (*.arena), or an ONNX model that carries a plan in its
    metadata ('arenite annotate', onnxsim). In a valid plan, no two tensors that are live at the
    same time overlap, and every turn of a program or of a plan in bands finds the rows that it
    reads. A plan for a range of sizes is proved for every size. With MODEL, the plan must also
    have been made for that file. Free dimensions and values of inputs default to those of the
    plan.
    """
    if plan_path.suffix.lower() == SUFFIX:
        if stated != Reading():
            raise click.UsageError(
                "--dim and --shape are for models; a program file has its shapes"
            )
        _verify_program(plan_path, model, Results(as_json=as_json))
        return
    if plan_path.suffix.lower() == ".onnx":
        if model is not None or stated != Reading():
            raise click.UsageError(
                "an annotated model states its plan and shapes; leave out MODEL, --dim, --shape "
                "and --value"
            )
        plan_file = _read_annotated(plan_path)
    else:
        plan_file = planfile.read(plan_path)
    if model is not None:
        _check_model(plan_path, plan_file, model, stated)
    plan = plan_file.plan

    def text(console: Console) -> None:
        records = plural(len(plan_file.problem.records), "record")
        against = "" if model is None else f", made for {model.name}"
        optimal = ", optimal" if plan.optimal else ""
        ranges = ", ".join(map(str, plan_file.dimensions))
        proved = f", for all sizes {ranges}" if ranges else ""
        console.print(
            printable(
                f"valid: {plan_path}: {records} in {both(plan.height)}{optimal}{proved}{against}"
            ),
            soft_wrap=True,
        )

    Results(as_json=as_json).show(
        {
            "valid": True,
            "plan": str(plan_path),
            "model": None if model is None else str(model),
            "target": plan_file.target,
            "strategy": plan.strategy,
            "num_operators": len(plan_file.problem.steps),
            "num_records": len(plan_file.problem.records),
            "lower_bound": plan.lower_bound,
            "height": plan.height,
            "optimal": plan.optimal,
            "dimensions": dimensions_as_json(plan_file.dimensions),
        },
        text,
    )


def _verify_program(path: Path, model: Path | None, results: Results) -> None:
    """Check a program file, and show that it is valid."""
    program = ProgramFile.read(path)
    program.check()
    if model is not None:
        program.check_model(path, model, model_digest(model))
    height, num_turns = sum(program.heights.values()), len(program.run.turns)

    def text(console: Console) -> None:
        against = "" if model is None else f", made of {model.name}"
        ranges = ", ".join(map(str, program.dimensions))
        proved = f", for all sizes {ranges}" if ranges else ""
        console.print(
            printable(
                f"valid: {path}: {plural(num_turns, 'turn')} of "
                f"{plural(program.num_steps, 'step')} in {both(height)}{proved}{against}"
            ),
            soft_wrap=True,
        )

    results.show(
        {
            "valid": True,
            "program": str(path),
            "model": None if model is None else str(model),
            "num_steps": program.num_steps,
            "num_turns": num_turns,
            "num_records": len(program.rectangles),
            "height": height,
            "dimensions": dimensions_as_json(program.dimensions),
        },
        text,
    )


def _read_annotated(path: Path) -> PlanFile:
    with needing("onnx", "onnx", f"reading {path.name!r}"):
        from arenite.planner.importers import read_annotations
    return read_annotations(path)


def _check_model(plan_path: Path, plan_file: PlanFile, model: Path, stated: Reading) -> None:
    """Return if the plan was made for this model and for the records it has."""
    with about_file(plan_path):
        plan_file.check_digest(model_digest(model))
    target = TARGETS.get(plan_file.target)
    if target is None:
        raise WrongTypeError(
            f"target is {plan_file.target!r}, one of {', '.join(TARGETS)} expected", path=plan_path
        )
    reading = reading_of(plan_file, stated)
    try:
        source = spread_as(target.reread(reading, model, plan_file), plan_file)
    except OrderError as error:
        raise StaleRecordsError(f"{error.reason}; plan it again", path=plan_path) from error
    with about_file(plan_path):
        plan_file.check_against(source.digest, source.problem, source.dimensions)
        if source.program is not None:
            plan_file.check_run(source.program)
    if plan_file.bands is not None:
        compiled = Compiled(replace(source, problem=plan_file.problem))
        with session_by_plan(compiled, plan_file.plan) as session:
            ProgramFile.of(session).check()
