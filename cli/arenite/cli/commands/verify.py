"""`arenite verify`: is the plan right, and is it the model's?"""

from collections.abc import Mapping
from pathlib import Path

import click

from arenite.cli.console.output import emit_json, results
from arenite.cli.options.shared import dim_option, json_option, shape_option
from arenite.cli.planning.programs import compile_in_order
from arenite.cli.render.numbers import both, plural
from arenite.cli.render.text import printable
from arenite.cli.targets.table import ARENITE, GENERIC, TARGETS, read_for_runtime
from arenite.planner import planfile
from arenite.planner.errors import about_file
from arenite.planner.files import model_digest
from arenite.planner.importers import read
from arenite.planner.planfile import PlanFile
from arenite.planner.planfile.errors import WrongTypeError


@click.command()
@click.argument("plan_path", metavar="PLAN.json", type=click.Path(path_type=Path))
@click.argument("model", required=False, type=click.Path(path_type=Path))
@dim_option
@shape_option
@json_option
def verify(
    plan_path: Path,
    model: Path | None,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    as_json: bool,
) -> None:
    """Check a plan file, against MODEL too if it is given.

    Free dimensions are bound as they were when the plan was made, unless said otherwise.
    """
    plan_file = planfile.read(plan_path)
    if model is not None:
        _check_model(plan_path, plan_file, model, dims, shapes)
    plan = plan_file.plan
    if as_json:
        emit_json(
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
            }
        )
        return
    records = plural(len(plan_file.problem.records), "record")
    against = "" if model is None else f", made for {model.name}"
    optimal = ", optimal" if plan.optimal else ""
    results().print(
        printable(f"valid: {plan_path}: {records} in {both(plan.height)}{optimal}{against}"),
        soft_wrap=True,
    )


def _check_model(
    plan_path: Path,
    plan_file: PlanFile,
    model: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Return if the plan was made for this model and for the records it has."""
    with about_file(plan_path):
        plan_file.check_digest(model_digest(model))
    problem = plan_file.problem
    if plan_file.target not in TARGETS:
        raise WrongTypeError(
            f"target is {plan_file.target!r}, one of {', '.join(TARGETS)} expected",
            path=plan_path,
        )
    dims = {**plan_file.model.dims, **dims}
    shapes = {**plan_file.model.shapes, **shapes}
    if plan_file.target == ARENITE:
        compile_in_order(model, plan_path, plan_file, dims, shapes)
        return
    if plan_file.target != GENERIC:
        source = read_for_runtime(plan_file.target, model, dims, shapes)
        with about_file(plan_path):
            plan_file.check_against(source.digest, source.problem)
        return
    # Where records differ in alignment, as those of a CSV may, the file states them.
    uniform = all(record.alignment == plan_file.alignment for record in problem.records)
    source = read(
        model,
        dims=dims,
        shapes=shapes,
        boundary=plan_file.boundary,
        alignment=plan_file.alignment if uniform else None,
        order=problem.steps,
        aliases=plan_file.aliases,
    )
    with about_file(plan_path):
        plan_file.check_against(source.digest, source.problem)
