"""How a model is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.planner import AliasKind, Boundary, InputValues, PlanFile, Program, Shapes, load
from arenite.runtime.rewrites import Activations, WeightBudget


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for reading a model; the target decides those that are None.

    Attributes:
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        values: Inputs fixed at a value, by name.
        boundary: Whether graph inputs and outputs lie in the arena.
        alignment: Bytes of every offset.
        aliases: Kinds of sharing of storage.
        target: Whose memory is planned.
        weight_budget: Weights that may be resident in a run; None for all.
        activations: What tensors between steps are kept as; None for the types of the model.
        limits: Limits of each search, and its observer.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)
    values: InputValues = field(default_factory=dict)
    boundary: Boundary = Boundary.INCLUDE
    alignment: int | None = None
    aliases: tuple[AliasKind, ...] | None = None
    order_name: str | None = None
    target: str | None = None
    weight_budget: WeightBudget | None = None
    activations: Activations | None = None
    limits: SearchLimits = field(default=UNLIMITED, compare=False)


def reading_of(plan_file: PlanFile, stated: Reading) -> Reading:
    """Return the options for the model of a plan: stated ones, else those of the plan."""
    model = plan_file.model
    return Reading(
        {**model.dims, **stated.dims},
        {**model.shapes, **stated.shapes},
        {**model.values, **stated.values},
    )


def read_graph(path: Path, reading: Reading) -> Program:
    """Return the graph of a model with its weights.

    Raises:
        ModelError: The model cannot be read.
        MissingDependencyError: The package of its format is absent.
    """
    return load(
        path, dims=reading.dims, shapes=reading.shapes, values=reading.values, weights=True
    )
