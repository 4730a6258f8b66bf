"""Write our plan into a model if the interpreter needs less memory for it.

The interpreter decides: the model is run as it is and with our plan, after kernel scratch has
been measured. Where the interpreter is absent or cannot run the model, heads are computed and
compared instead, without scratch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from arenite.planner.errors import MissingDependencyError
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.runtime.targets.tflm.measure import (
    InterpreterError,
    Measurement,
    measure,
    measure_bytes,
)
from arenite.runtime.targets.tflm.records import TflmModel, read_tflm_model
from arenite.runtime.targets.tflm.scratch import learn_scratch


@dataclass(frozen=True, slots=True)
class Measured:
    """What the interpreter needs for a model.

    Attributes:
        stock: Measurement of the file as it is.
        planned: Measurement with our plan.
        scratch: Kernel scratch in bytes, by operator name.
    """

    stock: Measurement
    planned: Measurement
    scratch: dict[str, int]


@dataclass(frozen=True, slots=True)
class TflmExport:
    """A model with the better of two plans.

    Attributes:
        model: The model as read.
        problem: The records, with kernel scratch as far as it is known.
        plan: Our plan.
        stock_head: Bytes of the arena's head without our plan.
        planned_head: Bytes of the arena's head with our plan.
        measured: The measurements; None if both heads were computed instead.
        not_measured: Why there are no measurements; empty if there are.
        data: Bytes of the file to use, with our plan or unchanged.
        stays: Why the stock plan is kept; empty if ours is used.
    """

    model: TflmModel
    problem: Problem
    plan: Plan
    stock_head: int
    planned_head: int
    measured: Measured | None
    not_measured: str
    data: bytes
    stays: str


def export_tflm(
    path: Path,
    strategy: Callable[[Problem], Plan],
    stock_strategy: Callable[[Problem], Plan],
) -> TflmExport:
    """Return the model with our plan, or as it is if that is no gain.

    Args:
        path: The model.
        strategy: Makes our plan.
        stock_strategy: Plans as the interpreter would, if that is not installed.

    Raises:
        ModelError: The model is damaged or cannot be planned.
        PlanError: The strategy made no plan, or a wrong one.
        MissingDependencyError: A package to read the model is absent.
    """
    model = read_tflm_model(path)
    num_inputs, num_outputs = len(model.program.inputs), len(model.program.outputs)
    try:
        stock = measure(path, num_inputs, num_outputs)
        scratch = learn_scratch(model)
    except (MissingDependencyError, InterpreterError) as error:
        return _computed(model, strategy, stock_strategy, str(error))
    problem = model.problem(scratch)
    plan = strategy(problem)
    data = model.file.with_plan(model.offsets(problem, plan))
    planned = measure_bytes(path, data, num_inputs, num_outputs)
    if planned.outputs != stock.outputs:
        stays = "with our plan the outputs differ"
    elif planned.smallest > stock.smallest:
        stays = f"ours works from {planned.smallest} B on, the stock from {stock.smallest} B"
    elif planned.total >= stock.total:
        stays = f"ours needs {planned.total} B, not less than the stock {stock.total} B"
    else:
        stays = ""
    return TflmExport(
        model,
        problem,
        plan,
        stock.head,
        planned.head,
        Measured(stock, planned, scratch),
        "",
        path.read_bytes() if stays else data,
        stays,
    )


def _computed(
    model: TflmModel,
    strategy: Callable[[Problem], Plan],
    stock_strategy: Callable[[Problem], Plan],
    reason: str,
) -> TflmExport:
    problem = model.problem()
    plan = strategy(problem)
    stock_head = stock_strategy(problem).height
    offsets = model.offsets(problem, plan)
    stays = ""
    if plan.height >= stock_head:
        stays = f"ours has a head of {plan.height} B, not less than the stock {stock_head} B"
    data = model.path.read_bytes() if stays else model.file.with_plan(offsets)
    return TflmExport(model, problem, plan, stock_head, plan.height, None, reason, data, stays)
