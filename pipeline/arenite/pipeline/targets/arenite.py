"""Programs of our own runtime, in the best order or in that of a plan."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import (
    Compiled,
    Tune,
    compile_model,
    lower_model,
    rules,
    runs_by_rows,
)
from arenite.planner import PlanFile
from arenite.runtime.rewrites import Activations, Caches, Kernels, WeightBudget, loads_as_in
from arenite.strategies import rebuild_bands


def compiled_for(
    reading: Reading,
    path: Path,
    capacity: int | None = None,
    kernels: Kernels = Kernels.QUICK,
    tune: Tune | None = None,
) -> Compiled:
    """Return the program of a model: in the best order, unless the user decides it.

    Raises:
        ModelError: The model cannot be read or run.
        WeightBudgetError: The budget cannot be met.
    """
    return compile_model(
        path,
        reading,
        order=order_finder(reading.order_name or "best", reading.limits),
        capacity=capacity,
        kernels=kernels,
        tune=tune,
    )


def compiled_by(reading: Reading, path: Path, plan_file: PlanFile) -> Compiled:
    """Return the program of a model in the order of a plan, and in its bands if it has some.

    Args:
        plan_file: States the order, the bands and the weight budget.

    Raises:
        ModelError: The model cannot be read or run.
        OrderError: The model does not have the steps of the plan.
    """
    stated = plan_file.model.weight_budget
    budget = WeightBudget.parse(stated) if stated else None
    model = plan_file.model
    reading = replace(
        reading, weight_budget=budget,
        activations=Activations(model.activations) if model.activations else None,
        cache=Caches(model.cache) if model.cache else None,
    )  # fmt: skip
    if plan_file.bands is not None:
        lowered = lower_model(path, reading)
        allowed = partial(runs_by_rows, lowered.program)
        found = rebuild_bands(
            lowered.program, plan_file.bands, plan_file.problem, rules(), allowed
        )
        if lowered.loads_beside:
            counted = replace(rules(), outlines=True)
            found = loads_as_in(found, plan_file.problem.steps, counted)
        return lowered.compiled(found)
    return compile_model(path, reading, order=plan_file.problem.steps)
