"""`arenite build`: program, plan and weights in one file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.observer import TERMINAL, watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import (
    capacity_option,
    json_option,
    refuse_beside,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.options.model import (
    activations_option,
    boundary_option,
    cache_option,
    huffman_option,
    memories_option,
    order_option,
    sizes_options,
    weight_budget_option,
)
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
    range_as_json,
    range_rows,
    subrange_rows,
    subranges_as_json,
    weights_as_json,
    weights_rows,
)
from arenite.pipeline.base import Reading, both, configured, grouped, plural
from arenite.pipeline.making import build_by_plan, build_model, code_of, rounding_error, tuned
from arenite.planner import Boundary, Step
from arenite.planner.operators import Band
from arenite.planner.programs import CostedMemory
from arenite.runtime.rewrites import Activations, Caches, Kernels, WeightBudget, num_by_tile
from arenite.strategies import find

_DECIDED_BY_PLAN = (
    "requested", "order_name", "dims", "shapes", "values", "capacity", "memories", "boundary",
    "time_limit_s", "seed", "weight_budget", "activations", "cache", "kernels", "tune", "is_whole",
)  # fmt: skip


@click.command(
    cls=SectionedCommand,
    sections={
        "Reading the model": ("order_name", "dims", "shapes", "values", "boundary"),
        **SEARCH,
        "Weights": ("code_weights", "huffman", "weight_budget"),
        "Kernels": ("activations", "cache", "kernels", "tune", "is_whole"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=PROGRAM_FILE, required=True, metavar="MODEL.arena",
    help="Program file to write.",
)  # fmt: skip
@click.option(
    "--plan", "plan_path", type=click.Path(path_type=Path), metavar="PLAN.json",
    help="Use this plan instead of making one.",
)  # fmt: skip
@strategy_option
@order_option
@sizes_options
@capacity_option
@memories_option
@boundary_option
@weight_budget_option
@click.option(
    "--code-weights", is_flag=True,
    help="Store weights with few distinct values compressed, such as those of 'arenite compress'.",
)  # fmt: skip
@huffman_option
@activations_option
@cache_option
@click.option(
    "--kernels", type=click.Choice([str(each) for each in Kernels]), default=str(Kernels.QUICK),
    show_default=True,
    help="Kernels of convolutions: direct, without Winograd; quick, with Winograd where it is "
    "faster and the arena need not grow; fastest, with Winograd wherever it is faster.",
)  # fmt: skip
@click.option(
    "--tune", is_flag=True,
    help="Measure the kernels of each convolution on this machine and use the fastest. Other "
    "processors use the built-in table.",
)  # fmt: skip
@click.option(
    "--whole", "is_whole", is_flag=True,
    help="Run every step whole. By default steps whose tensors exceed a cache run in bands of "
    "rows if that makes the arena smaller or allows faster kernels.",
)  # fmt: skip
@time_limit_option()
@seed_option
@json_option
def build(
    reading: Reading,
    model: Path,
    output: Path,
    plan_path: Path | None,
    requested: str,
    order_name: str | None,
    capacity: int | None,
    memories: tuple[CostedMemory, ...],
    boundary: str,
    weight_budget: WeightBudget | None,
    code_weights: bool,
    huffman: bool,
    activations: Activations | None,
    cache: Caches | None,
    kernels: str,
    tune: bool,
    is_whole: bool,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Build MODEL, its plan and its weights into one file that our runtime maps into memory.

    To run that file, neither the model nor the packages that read models are needed.
    """
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model, plan_path))
    if plan_path is None:
        reading = replace(
            reading, order_name=order_name, weight_budget=weight_budget,
            activations=activations, cache=cache, limits=watched(time_limit_s),
            boundary=Boundary(boundary),
        )  # fmt: skip
        if memories:
            refuse_beside("--memory", "capacity")
        built = build_model(
            model, reading, strategy=strategy, capacity=capacity, memories=memories,
            kernels=Kernels(kernels), tune=partial(tuned, observer=TERMINAL) if tune else None,
            is_whole=is_whole,
        )  # fmt: skip
    else:
        refuse_beside("--plan", *_DECIDED_BY_PLAN)
        built = build_by_plan(model, plan_path)
    compiled, plan = built.compiled, built.plan
    code = code_of(huffman=huffman) if code_weights else None
    with results.file(output) as file:
        held = built.write(file, code)
        file_bytes = file.stat().st_size
    rounding = None
    if reading.activations is Activations.FP16:
        rounding = rounding_error(model, reading, compiled, plan)
    problem = compiled.source.problem
    kinds_by_step = {_step_of(step): step.operator.label for step in compiled.program.steps}
    operators = Counter(kinds_by_step.values())
    notes = compiled.program.notes
    tiles = num_by_tile(compiled.program)
    tuned_tiles = num_by_tile(compiled.program, tuned=True)
    tuned_on = None if compiled.tuning is None else compiled.tuning.processor

    def text(console: Console) -> None:
        console.print(name(output.name, "bold"), soft_wrap=True)
        kinds = ", ".join(f"{count} {kind}" for kind, count in operators.most_common())
        rows = [
            ("steps", f"{len(kinds_by_step)}: {kinds}"),
            *_turns_rows(len(problem.steps), len(kinds_by_step)),
            arena_row(plan),
            *_whole_rows(built.height, plan.height),
            *range_rows(problem, plan, compiled.source.dimensions),
            *subrange_rows(built.parts),
            *memory_rows(problem, plan),
            *weights_rows(compiled),
            *_rounding_rows(rounding),
            *_tiles_rows(tiles, tuned_on, tuned_tiles),
            held_row(held),
            ("file", both(file_bytes)),
            *(("note", each) for each in notes),
        ]
        console.print(facts(rows))

    results.show(
        {
            "model": str(model),
            "output": str(output),
            "num_steps": len(kinds_by_step),
            "num_turns": len(problem.steps),
            "operators": dict(operators),
            **plan_as_json(plan),
            "height": built.height,
            "arena_bytes": plan.height,
            "memories": memories_as_json(problem, plan),
            **range_as_json(problem, plan, compiled.source.dimensions),
            "subranges": subranges_as_json(built.parts),
            "file_bytes": file_bytes,
            "weights": weights_as_json(compiled),
            "rounding_error": rounding,
            "held": held_as_json(held),
            "tiles": {str(tile): count for tile, count in tiles.items()},
            "tuned_on": tuned_on,
            "tuned_tiles": {str(tile): count for tile, count in tuned_tiles.items()},
            "notes": list(notes),
        },
        text,
    )


def _step_of(step: Step) -> str:
    """Return the name of a step, or of the one that it is a band of."""
    return step.operator.model_step if isinstance(step.operator, Band) else step.name


def _turns_rows(num_turns: int, num_steps: int) -> list[tuple[str, str]]:
    """Return how many turns run, if some steps run in bands, as rows of facts."""
    if num_turns == num_steps:
        return []
    return [("turns", f"{grouped(num_turns)} of {plural(num_steps, 'step')}")]


def _whole_rows(height: int, arena_bytes: int) -> list[tuple[str, str]]:
    """Return the row of the arena with whole steps, if that is larger."""
    return [("whole", both(height))] if height > arena_bytes else []


def _rounding_rows(error: float | None) -> list[tuple[str, str]]:
    if error is None:
        return []
    return [("rounding", f"changes outputs by {error:.1e} of the largest, on random input")]


def _tiles_rows(
    tiles: Mapping[int, int], tuned_on: str | None, tuned_tiles: Mapping[int, int]
) -> list[tuple[str, str]]:
    """Return how many convolutions run by tiles, and where, as rows of facts."""
    if tuned_on is None:
        return [("tiles", _by_tiles(tiles))] if tiles else []
    return [("tuned on", f"{tuned_on}: {_by_tiles(tuned_tiles)}"), ("elsewhere", _by_tiles(tiles))]


def _by_tiles(tiles: Mapping[int, int]) -> str:
    by_tile = (
        f"{plural(count, 'convolution')} by {tile} x {tile}" for tile, count in tiles.items()
    )
    return ", ".join(by_tile) or "no convolution"
