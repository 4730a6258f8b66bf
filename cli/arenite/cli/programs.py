"""Models made into programs, for the commands that run them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.cli.output import OutputError
from arenite.cli.search import Outcome, search
from arenite.planner.errors import InfeasibleError
from arenite.planner.importers import Shapes
from arenite.planner.ordering import FindOrder
from arenite.planner.strategy import Strategy
from arenite.runtime.compiler import Compiled, compile_model
from arenite.runtime.lowering.lowered import Lowered
from arenite.runtime.program import file as program_file
from arenite.strategies import find


def build_program(
    model: Path,
    output: Path,
    *,
    dims: Mapping[str, int],
    shapes: Shapes,
    order: FindOrder | None = None,
    strategy: Strategy | None = None,
) -> Compiled:
    """Write the program of a model, planned, and return it.

    Raises:
        ModelError: The model cannot be read or run.
        PlanError: There is no plan.
        OutputError: The file cannot be written.
    """
    compiled = compile_model(model, dims=dims, shapes=shapes, order=order)
    outcome = search(strategy or find("best"), compiled.source.problem)
    write_program(output, compiled, outcome)
    return compiled


def write_program(output: Path, compiled: Compiled, outcome: Outcome) -> None:
    """Write a program with its plan.

    Raises:
        InfeasibleError: The plan does not fit the capacity.
        OutputError: The file cannot be written.
    """
    capacity = compiled.source.problem.capacity
    if capacity is not None and outcome.plan.height > capacity:
        raise InfeasibleError(capacity, outcome.plan.lower_bound)
    try:
        program_file.write(output, compiled.assemble(outcome.plan))
    except OSError as error:
        raise OutputError(output, f"cannot be written: {error.strerror}") from error


def random_inputs(lowered: Lowered, seed: int) -> dict[str, NDArray[Any]]:
    """Return an array of random numbers for each input of a model, small ones for integers."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for port in lowered.inputs:
        dtype = np.dtype(lowered.graph.tensors[port.operand.tensor].dtype.label)
        if dtype.kind == "f":
            arrays[port.name] = generator.standard_normal(port.shape).astype(dtype)
        elif dtype.kind == "b":
            arrays[port.name] = generator.integers(0, 2, port.shape).astype(dtype)
        else:
            low, high = (0, 2) if dtype.itemsize > 1 else (np.iinfo(dtype).min, 128)
            arrays[port.name] = generator.integers(low, high, port.shape).astype(dtype)
    return arrays
