"""`arenite build`: program, plan and weights in one file."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from arenite.cli.console.output import check_destination, emit_json, results
from arenite.cli.options.shared import (
    capacity_option,
    dim_option,
    huffman_option,
    json_option,
    order_option,
    refuse_beside,
    seed_option,
    shape_option,
    strategy_option,
    time_limit_option,
    weight_budget_option,
)
from arenite.cli.planning.order_search import order_finder
from arenite.cli.planning.programs import code_of, compile_by_plan, write_program
from arenite.cli.planning.search import check_bound, check_capacity, configured, search
from arenite.cli.render.numbers import both, gap
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name
from arenite.cli.render.weights import weights_as_json, weights_rows
from arenite.planner.importers import Shapes
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.streaming import WeightBudget
from arenite.strategies import find

_DECIDED_BY_PLAN = (
    "requested", "order_name", "dims", "shapes", "capacity", "time_limit_s", "seed",
    "weight_budget",
)  # fmt: skip


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="MODEL.arena",
    help="The program file to write.",
)  # fmt: skip
@click.option(
    "--plan", "plan_path", type=click.Path(path_type=Path), metavar="PLAN.json",
    help="Use this plan, which `arenite plan` made.",
)  # fmt: skip
@strategy_option
@order_option
@dim_option
@shape_option
@capacity_option
@weight_budget_option
@click.option(
    "--code-weights", is_flag=True,
    help="Code weights that share few values, as `arenite compress` leaves them.",
)  # fmt: skip
@huffman_option
@time_limit_option(None, "Seconds that each search, of an order or a placement, may take.")
@seed_option
@json_option
def build(
    model: Path,
    output: Path,
    plan_path: Path | None,
    requested: str,
    order_name: str,
    dims: Mapping[str, int],
    shapes: Shapes,
    capacity: int | None,
    weight_budget: WeightBudget | None,
    code_weights: bool,
    huffman: bool,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Lower MODEL, plan it, and write one file that the runtime maps into memory.

    To run the file takes neither the model nor the packages that read it.
    """
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    check_destination(output, model, *(() if plan_path is None else (plan_path,)))
    if plan_path is None:
        compiled = compile_model(
            model,
            dims=dims,
            shapes=shapes,
            order=order_finder(order_name, time_limit_s),
            capacity=capacity,
            weight_budget=weight_budget,
        )
        check_bound(compiled.source.problem)
        outcome = search(strategy, compiled.source.problem, time_limit_s=time_limit_s)
        check_capacity(capacity, outcome, requested)
    else:
        refuse_beside("--plan", *_DECIDED_BY_PLAN)
        compiled, outcome = compile_by_plan(model, plan_path)
    code = code_of(huffman=huffman) if code_weights else None
    write_program(output, compiled, outcome, code=code)
    problem, plan = compiled.source.problem, outcome.plan
    operators = Counter(type(step.operator).__name__ for step in compiled.lowered.steps.values())
    if as_json:
        emit_json(
            {
                "model": str(model),
                "output": str(output),
                "num_steps": len(problem.steps),
                "operators": dict(operators),
                "arena_bytes": plan.height,
                "lower_bound": plan.lower_bound,
                "optimal": plan.optimal,
                "file_bytes": output.stat().st_size,
                "weights": weights_as_json(compiled),
                "strategy": plan.strategy,
                "notes": list(compiled.lowered.notes),
            }
        )
        return
    console = results()
    console.print(name(output.name, "bold"), soft_wrap=True)
    distance = "optimal" if plan.optimal else f"{gap(plan.height, plan.lower_bound)} above bound"
    kinds = ", ".join(f"{count} {kind}" for kind, count in operators.most_common())
    rows = [
        ("steps", f"{len(problem.steps)}: {kinds}"),
        ("arena", f"{both(plan.height)}, {distance}"),
        *weights_rows(compiled),
        ("file", both(output.stat().st_size)),
        *(("note", note) for note in compiled.lowered.notes),
    ]
    console.print(facts(rows))
