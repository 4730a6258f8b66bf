"""`arenite fit`: a program within a budget, or the frontier of memory against time."""

from collections.abc import Mapping
from pathlib import Path

import click

from arenite.cli.commands.fit import page, shown
from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option, refuse_beside, time_limit_option
from arenite.cli.options.fitting import link_option
from arenite.cli.options.model import (
    dim_option,
    memories_option,
    order_option,
    shape_option,
    value_option,
)
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import BudgetType, PercentType, WeightBudgetType
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.costs import MachineCosts
from arenite.pipeline.making.fitting import Fitting, fit_model
from arenite.pipeline.making.programs import SUFFIX
from arenite.pipeline.report.frontier import maps_of
from arenite.pipeline.report.page import check_packages
from arenite.pipeline.report.row_svg import as_svg
from arenite.planner.budget import Budget
from arenite.planner.costs import Link
from arenite.planner.importers import InputValues, Shapes
from arenite.planner.several_memories import CostedMemory
from arenite.runtime.rewrites.streaming import WeightBudget
from arenite.strategies import find_policy

_PAGE, _PICTURE, _PLAN = ".html", ".svg", ".json"


@click.command(
    cls=SectionedCommand,
    sections={
        "Reading the model": ("order_name", "dims", "shapes", "values"),
        "Trading time for memory": ("policy_name", "link"),
        "Search": ("costs_path", "time_limit_s"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--budget", type=BudgetType(), metavar="SIZE|N%",
    help="Bytes that the arena may take, such as 256KiB, or a share of what it takes whole.",
)  # fmt: skip
@click.option(
    "--weights", "weight_budget", type=WeightBudgetType(), metavar="SIZE|N%[,in-turn|,beside]",
    help="Keep at most this much of the weights resident; stream the rest, ',beside' the "
    "computation or, ',in-turn', between its steps; by default as is quicker for such windows.",
)  # fmt: skip
@click.option(
    "--slowdown", type=PercentType(), metavar="N%",
    help="Take at most this much more time, as far as it can be predicted.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Program file to write, MODEL.arena, or its plan, PLAN.json; without a budget a page of "
    "the frontier, PAGE.html, or a picture of the memory maps, PICTURE.svg.",
)  # fmt: skip
@click.option(
    "--measure", is_flag=True, help="Run each program of the frontier and show its latency."
)
@click.option(
    "--costs", "costs_path", type=click.Path(path_type=Path), metavar="FILE",
    help="What the machine's work costs, as `arenite calibrate -o FILE` states it.  [default: "
    "what it measured here, or else those of a desktop]",
)  # fmt: skip
@click.option(
    "--policy", "policy_name", metavar="NAME",
    help="Run steps again and spill tensors by this policy, as `arenite strategies` lists them, "
    "instead of running in bands.",
)  # fmt: skip
@link_option
@memories_option
@order_option
@dim_option
@shape_option
@value_option
@time_limit_option(text="Keep the best so far after S seconds.")
@json_option
@click.option(
    "--map/--no-map", "with_map", default=None,
    help="Draw the memory map of the program, of a frontier that of the least.  [default: only "
    "on a terminal]",
)  # fmt: skip
def fit(
    model: Path,
    budget: Budget | None,
    weight_budget: WeightBudget | None,
    slowdown: float | None,
    output: Path | None,
    measure: bool,
    costs_path: Path | None,
    policy_name: str | None,
    link: Link | None,
    memories: tuple[CostedMemory, ...],
    order_name: str | None,
    dims: Mapping[str, int],
    shapes: Shapes,
    values: InputValues,
    time_limit_s: float | None,
    as_json: bool,
    with_map: bool | None,
) -> None:
    """Fit MODEL into a budget of memory at the least price in time.

    Parts of the network run in bands of rows: each step makes the few rows that the next one
    needs, and a row goes when its last reader is done. The results are the same to the bit, and so
    are the multiply-adds; only to go lower still are some rows made again, and it says how many.

    Where that does not meet a budget, or --policy asks for it, tensors that are only carried are
    made again when they are needed, or spilled to a temporary file meanwhile, beside the
    computation.

    With --memory it chooses what runs in bands and where each tensor lies, so that computing and
    reading and writing the slower memories takes least.

    Without --budget, --slowdown or --memory it shows the frontier: what each size costs.

    Ctrl-C keeps the best so far.
    """
    if as_json and with_map:
        raise click.UsageError("--map and --json exclude each other")
    if memories:
        refuse_beside("--memory", "budget", "slowdown", "policy_name", "link")
    is_frontier = budget is None and slowdown is None and not memories
    _check_output(output, is_frontier=is_frontier)
    if measure and not is_frontier:
        raise click.UsageError(
            "--measure is for the frontier; it goes without --budget and --memory"
        )
    if policy_name is not None and budget is None:
        raise click.UsageError("--policy requires --budget")
    if policy_name is not None:
        find_policy(policy_name)  # an unknown one is refused before the model is read
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model, costs_path))
    is_page = output is not None and output.suffix == _PAGE
    if is_page:
        check_packages()
    reading = Reading(
        dims, shapes, values, order_name=order_name, weight_budget=weight_budget,
        limits=watched(time_limit_s),
    )  # fmt: skip
    fitting = Fitting(model, reading, MachineCosts.known(costs_path), link)
    if is_frontier:
        found = fitting.frontier()
        latencies = fitting.latencies(found) if measure else ()
        if is_page:
            results.write(output, lambda: page.frontier_page(fitting, found, latencies))
        else:
            results.write(output, lambda: as_svg(fitting.lowered.name, maps_of(found)))
        results.show(
            shown.frontier_as_json(fitting, found, latencies, output),
            shown.with_map(
                shown.frontier_text(fitting, found, latencies, output), found[-1], wanted=with_map
            ),
        )
        return
    fitted = fit_model(fitting, budget, slowdown=slowdown, policy=policy_name, memories=memories)
    chosen = fitted.fit
    if output is not None and output.suffix == SUFFIX:
        held = fitted.save(output)
    else:
        results.write(output, lambda: fitting.plan_file(chosen).to_bytes())
        held = fitting.held(chosen)
    results.show(
        shown.fit_as_json(fitting, chosen, budget, held, output),
        shown.with_map(
            shown.fit_text(fitting, chosen, budget, held, output), chosen, wanted=with_map
        ),
    )


def _check_output(output: Path | None, *, is_frontier: bool) -> None:
    """Refuse an output of the other kind before anything is read.

    Raises:
        UsageError: It is neither page nor picture for a frontier, or neither program nor plan for
            a budget.
    """
    if output is None:
        return
    wanted = (_PAGE, _PICTURE) if is_frontier else (SUFFIX, _PLAN)
    if output.suffix not in wanted:
        what = (
            "the frontier is a page or a picture"
            if is_frontier
            else "what fits a budget is a program or a plan"
        )
        names = " or ".join(f"*{suffix}" for suffix in wanted)
        raise click.UsageError(f"-o {output}: {what}; name it {names}")
