"""How a model is read."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.planner import (
    AliasKind,
    Boundary,
    Dims,
    InputValues,
    PlanFile,
    Program,
    RangedShapes,
    load,
)
from arenite.planner.sizes import Dimension, Length, read_lengths
from arenite.runtime.rewrites import Activations, Caches, Hops, WeightBudget


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for reading a model; the target decides those that are None.

    Attributes:
        dims: Values or ranges of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        values: Inputs fixed at a value, by name.
        boundary: Whether graph inputs and outputs lie in the arena.
        alignment: Bytes of every offset.
        aliases: Kinds of sharing of storage.
        target: Whose memory is planned.
        weight_budget: Weights that may be resident in a run; None for all.
        activations: What tensors between steps are kept as; None for the types of the model.
        cache: What caches that grow are kept as; None for the types of the model.
        hops: The stream that it runs on; None to run on whole windows.
        limits: Limits of each search, and its observer.
    """

    dims: Dims = field(default_factory=dict)
    shapes: RangedShapes = field(default_factory=dict)
    values: InputValues = field(default_factory=dict)
    boundary: Boundary = Boundary.INCLUDE
    alignment: int | None = None
    aliases: tuple[AliasKind, ...] | None = None
    order_name: str | None = None
    target: str | None = None
    weight_budget: WeightBudget | None = None
    activations: Activations | None = None
    cache: Caches | None = None
    hops: Hops | None = None
    limits: SearchLimits = field(default=UNLIMITED, compare=False)

    @property
    def ranges(self) -> tuple[Dimension, ...]:
        """The ranges among its dimensions and shapes."""
        given = itertools.chain(self.dims.values(), *self.shapes.values())
        return tuple(each for each in given if isinstance(each, Dimension))

    @property
    def fixed_dims(self) -> Mapping[str, int]:
        """Values of free dimensions, by name.

        Raises:
            OptionsError: A range is given.
        """
        return {name: _one(each) for name, each in self.dims.items()}

    @property
    def fixed_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of graph inputs, by name.

        Raises:
            OptionsError: A range is given.
        """
        return {name: tuple(map(_one, shape)) for name, shape in self.shapes.items()}


StatedDims: TypeAlias = Mapping[str, int | str | Dimension]
"""Values of free dimensions by name, ranges such as `64..512:64`, or sums such as `past+seq`."""
StatedShapes: TypeAlias = Mapping[str, Sequence[int | str | Dimension]]
"""Shapes of inputs by name, with ranges such as `32..1080` among the lengths."""


def lengths_of(
    dims: StatedDims | None, shapes: StatedShapes | None
) -> tuple[dict[str, Length], dict[str, tuple[Length, ...]]]:
    """Return dimensions and shapes as a `Reading` takes them.

    Raises:
        SizeError: A text is no range.
    """
    return (
        read_lengths(dims or {}),
        {
            name: tuple(_length(f"{name}:{axis}", each) for axis, each in enumerate(shape))
            for name, shape in (shapes or {}).items()
        },
    )


def _length(name: str, stated: int | str | Dimension) -> Length:
    return Dimension.parse(name, stated) if isinstance(stated, str) else stated


def _one(length: Length) -> int:
    if isinstance(length, Dimension):
        raise OptionsError(
            f"{length}: this takes one size, such as {length.high}; plan, fit, build, run, "
            "bench, inspect, verify, compare and export --to c take ranges"
        )
    return length


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
