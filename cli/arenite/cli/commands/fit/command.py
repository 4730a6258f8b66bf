"""`arenite fit`: a program within a budget, or the frontier of memory against time."""

from dataclasses import replace
from pathlib import Path

import click

from arenite.cli.commands.fit import page, shown, weights
from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option, refuse_beside, time_limit_option
from arenite.cli.options.fitting import link_option
from arenite.cli.options.model import (
    activations_option,
    boundary_option,
    cache_option,
    memories_option,
    order_option,
    sizes_options,
)
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.stream import stream_options
from arenite.cli.options.types import BUDGET, PERCENT, WEIGHT_BUDGET
from arenite.pipeline.base import Reading
from arenite.pipeline.making import (
    SUFFIX,
    FittedModel,
    Fitting,
    MachineCosts,
    OneBudget,
    fit_model,
    measured_runs_s,
)
from arenite.pipeline.report import as_svg, check_packages, maps_of
from arenite.planner import Boundary, Budget, Link
from arenite.planner.programs import CostedMemory
from arenite.runtime.rewrites import Activations, Caches, WeightBudget
from arenite.strategies import find_policy

_PAGE, _PICTURE, _PLAN = ".html", ".svg", ".json"


@click.command(
    cls=SectionedCommand,
    sections={
        "Reading the model": ("order_name", "dims", "shapes", "values"),
        "The stream": ("stream_axis", "stream_hop", "stream_rate", "stream_padding"),
        "Trading time for memory": ("policy_name", "link"),
        "Search": ("costs_path", "time_limit_s"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--budget", type=BUDGET, metavar="SIZE|N%",
    help="Size limit of the arena, such as 256KiB, or a share of its size without bands, 50%.",
)  # fmt: skip
@click.option(
    "--weights", "weight_budget", type=WEIGHT_BUDGET,
    metavar="SIZE|N%|rest[,in-turn|,beside]",
    help="Keep at most this many bytes of weights resident and load the others in each run, as "
    "'arenite build --weights' does; 'rest': --budget covers the arena and the resident weights.  "
    "[default: all resident]",
)  # fmt: skip
@activations_option
@cache_option
@click.option(
    "--slowdown", type=PERCENT, metavar="N%",
    help="Limit of the additional time, as predicted by the costs of the machine.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="File to write: the program, MODEL.arena, or its plan, PLAN.json. Without a budget: a "
    "page of the frontier, PAGE.html, or the memory maps, PICTURE.svg.",
)  # fmt: skip
@click.option(
    "--measure", is_flag=True, help="Measure the latency of each program of the frontier."
)
@click.option(
    "--costs", "costs_path", type=click.Path(path_type=Path), metavar="FILE",
    help="Costs of the machine, as written by `arenite calibrate -o FILE`.  [default: those "
    "measured on this machine, else those of a desktop]",
)  # fmt: skip
@click.option(
    "--policy", "policy_name", metavar="NAME",
    help="Recompute and spill tensors by this policy instead of running in bands; "
    "`arenite strategies` lists the policies.",
)  # fmt: skip
@link_option
@memories_option
@boundary_option
@order_option
@sizes_options
@stream_options(required=False)
@time_limit_option(text="Stop after S seconds and keep the best result.")
@json_option
@click.option(
    "--map/--no-map", "with_map", default=None,
    help="Draw the memory map of the program, or of the smallest of a frontier.  [default: only "
    "on a terminal]",
)  # fmt: skip
def fit(
    reading: Reading,
    model: Path,
    budget: Budget | None,
    weight_budget: WeightBudget | None,
    activations: Activations | None,
    cache: Caches | None,
    slowdown: float | None,
    output: Path | None,
    measure: bool,
    costs_path: Path | None,
    policy_name: str | None,
    link: Link | None,
    memories: tuple[CostedMemory, ...],
    boundary: str,
    order_name: str | None,
    time_limit_s: float | None,
    as_json: bool,
    with_map: bool | None,
) -> None:
    """Fit MODEL into a budget of memory at the least price in time.

    Parts of the network run in bands of rows: each step computes only the rows that the next
    step needs, and a row is freed after its last reader. Bands change neither the number of
    multiply-adds nor the output bits of `arenite build --kernels direct`; they do not use Winograd
    kernels. Smaller budgets recompute some rows; the output states how many.

    If bands do not meet the budget, or --policy names a policy, tensors that no step uses for a
    while are recomputed later, or spilled to a temporary file and read back during the
    computation.

    --memory spreads the tensors over several memories and minimises the time of computing and of
    accessing the slower ones.

    Without --budget, --slowdown and --memory the command shows the frontier: the time that each
    size costs.

    Ctrl-C keeps the best result so far.
    """
    if as_json and with_map:
        raise click.UsageError("--map and --json exclude each other")
    if memories:
        refuse_beside("--memory", "budget", "slowdown", "policy_name", "link")
    is_frontier = budget is None and slowdown is None and not memories
    if reading.hops is not None and output is not None and output.suffix == _PLAN:
        raise click.UsageError(f"-o {output}: a plan states no stream; name it *{SUFFIX}")
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
    reading = replace(
        reading, boundary=Boundary(boundary), order_name=order_name, weight_budget=weight_budget,
        activations=activations, cache=cache, limits=watched(time_limit_s),
    )  # fmt: skip
    machine = MachineCosts.known(costs_path)
    if weight_budget is not None and weight_budget.is_rest:
        refuse_beside("--weights rest", "slowdown", "policy_name", "memories")
        one = OneBudget(model, reading, machine, link)
        if budget is None:
            if output is not None:
                raise click.UsageError("-o: --weights rest writes a program; state --budget")
            models = list(one.frontier())
            seconds = measured_runs_s(models) if measure else ()
            results.show(weights.as_json(models, seconds), weights.as_text(models, seconds))
            return
        _show(results, one.within(budget), budget, output, with_map=with_map)
        return
    fitting = Fitting(model, reading, machine, link)
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
    _show(results, fitted, budget, output, with_map=with_map)


def _show(
    results: Results,
    fitted: FittedModel,
    budget: Budget | None,
    output: Path | None,
    *,
    with_map: bool | None,
) -> None:
    """Write a program or its plan, if that is asked for, and show it."""
    fitting, chosen = fitted.fitting, fitted.fit
    if output is not None and output.suffix == SUFFIX:
        held = fitted.save(output)
    else:
        results.write(output, lambda: fitting.plan_file(chosen).to_bytes())
        held = fitting.held(chosen)
    results.show(
        shown.fit_as_json(fitted, budget, held, output),
        shown.with_map(shown.fit_text(fitted, budget, held, output), chosen, wanted=with_map),
    )


def _check_output(output: Path | None, *, is_frontier: bool) -> None:
    """Refuse an output of the other kind before anything is read."""
    if output is None:
        return
    wanted = (_PAGE, _PICTURE) if is_frontier else (SUFFIX, _PLAN)
    if output.suffix not in wanted:
        what = (
            "a frontier is written as a page or a picture"
            if is_frontier
            else "with a budget, a program or a plan is written"
        )
        names = " or ".join(f"*{suffix}" for suffix in wanted)
        raise click.UsageError(f"-o {output}: {what}; name it {names}")
