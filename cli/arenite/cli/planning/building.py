"""From a model to a placed program: whole, or in bands of rows where they cost nothing."""

from dataclasses import dataclass, replace
from pathlib import Path

from arenite.cli.planning.search import Outcome, check_bound, check_capacity, search
from arenite.cli.targets.order_search import order_finder
from arenite.cli.targets.reading import Reading
from arenite.planner.costs import SD_CARD
from arenite.planner.derive import Derivation, derive
from arenite.planner.program import Program
from arenite.planner.rewrites.bands.geometry import RowStep
from arenite.planner.strategy import Strategy
from arenite.runtime.compiler import (
    Compiled,
    Lowered,
    Tune,
    Tuning,
    lower_model,
    rules,
    runs_by_rows,
)
from arenite.runtime.rewrites.tiles import Kernels, by_table, takes_tiles
from arenite.strategies import native
from arenite.strategies.fit.cached import in_bands
from arenite.strategies.fit.regions import Regions


@dataclass(frozen=True, slots=True)
class Built:
    """A program and its plan.

    Attributes:
        compiled: The program.
        outcome: Its plan.
        whole_bytes: What the arena takes where every step runs whole.
    """

    compiled: Compiled
    outcome: Outcome
    whole_bytes: int


def compile_and_place(
    reading: Reading,
    model: Path,
    strategy: Strategy,
    *,
    capacity: int | None = None,
    kernels: Kernels = Kernels.QUICK,
    tune: Tune | None = None,
    is_whole: bool = False,
) -> Built:
    """Return the program of a model in the best order, and the plan of a strategy.

    Steps that hand each other more than a cache holds run in bands of rows, if the arena is then
    no larger; outputs are the same bits.

    Args:
        reading: How the model is read.
        model: The file.
        strategy: Makes the plan.
        capacity: Most bytes that the arena may take; None for no limit.
        kernels: Which kernels compute convolutions.
        tune: Measures them; None to go by a table.
        is_whole: Run every step whole.

    Raises:
        ModelError: The model cannot be read or run.
        WeightBudgetError: The budget of its weights cannot be met.
        InfeasibleError: No plan fits the capacity.
        SearchLimitError: That of the strategy does not.
    """
    lowered = lower_model(
        model, dims=reading.dims, shapes=reading.shapes, values=reading.values,
        weight_budget=reading.weight_budget,
    )  # fmt: skip
    tuning = None if tune is None else tune(lowered.program)
    order = order_finder(reading.order_name or "best", reading.time_limit_s)
    ordered = derive(lowered.program, rules(capacity), order)
    found = lowered.ahead(ordered, rules(capacity))
    check_bound(found.problem)
    outcome = search(strategy, found.problem, time_limit_s=reading.time_limit_s)
    check_capacity(found.problem, outcome, strategy)
    height = outcome.plan.height
    if not is_whole and not outcome.interrupted:
        banded = _banded(lowered, ordered, kernels, tuning)
        if banded is not None and banded.problem.lower_bound <= height:
            in_rows = search(strategy, banded.problem, time_limit_s=reading.time_limit_s)
            if in_rows.plan.height <= height:
                found, outcome = banded, in_rows
    compiled = replace(lowered.compiled(found), kernels=kernels, tuning=tuning, room=height)
    return Built(compiled, outcome, height)


def _banded(
    lowered: Lowered, ordered: Derivation, kernels: Kernels, tuning: Tuning | None
) -> Derivation | None:
    """Return the program in bands, and its records; None if there is nothing to gain by them."""
    if not native.is_built():
        return None
    program = lowered.program
    if ordered.order is not None:
        program = program.reordered(ordered.order.steps)

    def may_run(each: RowStep) -> bool:
        is_quicker_by_tiles = kernels is not Kernels.DIRECT and _prefers_tiles(
            program, each, tuning
        )
        return runs_by_rows(program, each) and not is_quicker_by_tiles

    in_rows = in_bands(Regions(program, SD_CARD, may_run))
    if in_rows is None:
        return None
    counted = replace(rules(), outlines=True)
    return lowered.ahead(derive(in_rows, counted), counted)


def _prefers_tiles(program: Program, each: RowStep, tuning: Tuning | None) -> bool:
    """Tell whether a step is computed after Winograd if there is room for it."""
    if not takes_tiles(program, each.step):
        return False
    prefers = (by_table,) if tuning is None else (by_table, tuning.prefer)
    return any(prefer(program, each.step) for prefer in prefers)
