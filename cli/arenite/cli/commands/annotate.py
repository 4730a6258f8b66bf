"""`arenite annotate`: an ONNX model that carries its plan in its metadata."""

from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import (
    json_option,
    refuse_beside,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.options.model import dim_option, shape_option
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import ALIASES, ALIGNMENT
from arenite.cli.render.facts import facts, name
from arenite.pipeline.base import both, configured, distance, place
from arenite.planner import (
    DEFAULT_ALIGNMENT,
    AliasKind,
    Boundary,
    PlanFile,
    Shapes,
    model_format,
    planfile,
    read,
)
from arenite.planner.errors import UnsupportedModelError, about_file, needing
from arenite.planner.planfile import ModelReference
from arenite.strategies import find

_DECIDED_BY_PLAN = (
    "requested", "dims", "shapes", "alignment", "aliases", "time_limit_s", "seed",
)  # fmt: skip


@click.command(
    cls=SectionedCommand,
    sections={
        "Reading the model": ("dims", "shapes", "alignment", "aliases"),
        "Search": ("requested", "time_limit_s", "seed"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.onnx",
    help="Model file to write.",
)  # fmt: skip
@click.option(
    "--plan", "plan_path", type=click.Path(path_type=Path), metavar="PLAN.json",
    help="Write this plan, of the graph as written, instead of making one.",
)  # fmt: skip
@strategy_option
@dim_option
@shape_option
@click.option(
    "--align",
    "alignment",
    type=ALIGNMENT,
    default=DEFAULT_ALIGNMENT,
    show_default=True,
    metavar="N",
    help="Align every offset to N bytes, a power of two.",
)
@click.option(
    "--alias",
    "aliases",
    type=ALIASES,
    default="views,in-place",
    show_default=True,
    metavar="KINDS",
    help="Which tensors may share storage; the default is what onnxsim shares.",
)
@time_limit_option()
@seed_option
@json_option
def annotate(
    model: Path,
    output: Path,
    plan_path: Path | None,
    requested: str,
    dims: Mapping[str, int],
    shapes: Shapes,
    alignment: int,
    aliases: tuple[AliasKind, ...],
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Write the plan of an ONNX MODEL into its metadata, where onnxsim writes its own.

    Each value gets its offset and its bytes, the model the bytes of the arena. The operators stay
    in the order of the file. 'arenite verify OUT.onnx' reads the plan back and checks it.
    """
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model, plan_path))
    if model_format(model) != "onnx":
        raise UnsupportedModelError(
            model.name, "annotate supports ONNX only; see arenite export", path=model
        )
    if plan_path is None:
        strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
        source = read(model, dims=dims, shapes=shapes, alignment=alignment, aliases=aliases)
        plan_file = PlanFile(
            ModelReference(source.name, source.digest, dims, shapes),
            "generic",
            Boundary.INCLUDE,
            alignment,
            aliases,
            source.problem,
            place(strategy, source.problem, watched(time_limit_s)).plan,
        )
    else:
        refuse_beside("--plan", *_DECIDED_BY_PLAN)
        plan_file = planfile.read(plan_path)
    with needing("onnx", "onnx", f"annotating {model.name!r}"):
        from arenite.planner.importers import annotated
    with about_file(plan_path or model):
        data = annotated(model, plan_file)
    results.write(output, lambda: data)
    plan = plan_file.plan

    def text(console: Console) -> None:
        console.print(name(model.name, "bold"), soft_wrap=True)
        console.print(
            facts(
                [
                    ("arena", f"{both(plan.height)}, {distance(plan)}"),
                    ("strategy", name(plan.strategy)),
                    ("written", name(str(output))),
                ]
            )
        )

    results.show(
        {
            "model": str(model),
            "output": str(output),
            "strategy": plan.strategy,
            "alignment": plan_file.alignment,
            "aliases": [kind.value for kind in plan_file.aliases],
            "height": plan.height,
            "lower_bound": plan.lower_bound,
            "optimal": plan.optimal,
        },
        text,
    )
