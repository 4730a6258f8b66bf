"""How the model files of a command are read: dimensions, order, sharing, target."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import click

from arenite.cli.options.types import AliasType, AlignmentType, DimType, InputValueType, ShapeType
from arenite.cli.options.weights import weight_budget_option
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.table import ARENITE, GENERIC, TARGETS
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.runtime.rewrites.streaming import WeightBudget
from arenite.strategies.order import ORDERS

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Value = TypeVar("_Value")
_F = TypeVar("_F", bound=Callable[..., object])


def _as_mapping(
    _context: click.Context, parameter: click.Parameter, pairs: Sequence[tuple[str, _Value]]
) -> Mapping[str, _Value]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise click.BadParameter("a name is given twice", param=parameter)
    return mapping


def _binding(
    name: str, kind: DimType | ShapeType | InputValueType, metavar: str, purpose: str
) -> Callable[[_F], _F]:
    """Return the option `--NAME` that gives something of the model a value, for each by name."""
    return click.option(
        f"--{name}",
        f"{name}s",
        type=kind,
        multiple=True,
        callback=_as_mapping,
        metavar=metavar,
        help=f"{purpose} Repeatable.",
    )


dim_option = _binding("dim", DimType(), "NAME=N", "Set a free dimension of the model.")
shape_option = _binding(
    "shape", ShapeType(), "INPUT=1x3x224x224", "Set the shape of a graph input."
)
value_option = _binding(
    "value",
    InputValueType(),
    "INPUT=NUMBER",
    "Fix a graph input at a number; the model then does not take it.",
)
order_option = click.option(
    "--order",
    "order_name",
    type=click.Choice([order.name for order in ORDERS]),
    metavar="NAME",
    help=f"How to order the operators: {', '.join(order.name for order in ORDERS)}. 'optimal' "
    "proves the lowest peak where it can.  [default: best]",
)
_target_option = click.option(
    "--target",
    type=click.Choice(list(TARGETS)),
    metavar="NAME",
    help="Whose memory to plan: "
    f"{', '.join(f'{each.name} ({each.summary})' for each in TARGETS.values())}.  "
    f"[default: {ARENITE.name}; {GENERIC.name} if our runtime cannot run the model, for a CSV, "
    "and with --boundary, --align or --alias]",
)
_boundary_option = click.option(
    "--boundary",
    type=click.Choice([boundary.value for boundary in Boundary]),
    default=Boundary.INCLUDE.value,
    show_default=True,
    help="Whether graph inputs and outputs live in the arena.",
)
_align_option = click.option(
    "--align",
    "alignment",
    type=AlignmentType(),
    metavar="N",
    help="Align every offset to N bytes, a power of two.  "
    f"[default: {DEFAULT_ALIGNMENT} for the graph as written, 64 for our runtime; a CSV states "
    "its own]",
)
_alias_option = click.option(
    "--alias",
    "aliases",
    type=AliasType(),
    metavar="KINDS",
    help=f"Which tensors may share storage: none, all, or a list of {', '.join(AliasKind)}. "
    "'all' excludes overlap, which needs kernels that compute row by row.  [default: all]",
)


def reading_options(function: Callable[Concatenate[Reading, _P], _R]) -> Callable[..., _R]:
    """Add the options of `Reading` and hand them over as the first argument."""

    @_target_option
    @order_option
    @dim_option
    @shape_option
    @value_option
    @_boundary_option
    @_align_option
    @_alias_option
    @weight_budget_option
    @functools.wraps(function)
    def with_reading(
        dims: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        boundary: str,
        alignment: int | None,
        aliases: tuple[AliasKind, ...] | None,
        order_name: str | None,
        weight_budget: WeightBudget | None,
        target: str | None,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        reading = Reading(
            dims, shapes, values, Boundary(boundary), alignment, aliases, order_name, target,
            weight_budget,
        )  # fmt: skip
        return function(reading, *args, **kwargs)

    return with_reading
