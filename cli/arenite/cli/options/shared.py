"""Options that several commands share, and what their values look like."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from arenite.cli.planning.order_search import order_finder
from arenite.cli.targets.table import ARENITE, GENERIC, OPEN_FIELDS, TARGETS, read_for_runtime
from arenite.planner.importers import read
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.ordering import FindOrder
from arenite.planner.rewrites.aliasing import SAFE_KINDS, AliasKind
from arenite.planner.source import Source
from arenite.planner.units import parse_size
from arenite.runtime.lowering.streaming import WeightBudget
from arenite.strategies.order import ORDERS

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound=Callable[..., object])

_MAX_NUMBER = 2**63 - 1


class SizeType(click.ParamType[int]):
    """Bytes, such as `65536` or `64KiB`."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the bytes."""
        try:
            size = parse_size(str(value))
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)
        if not 1 <= size <= _MAX_NUMBER:
            self.fail(f"{value!r} is not a size between 1 B and 2^63 - 1 B", param, ctx)
        return size


class WeightBudgetType(click.ParamType[WeightBudget]):
    """Bytes of weights, such as `4MiB`, or a part of them all, such as `25%`."""

    name = "weight budget"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> WeightBudget:
        """Return the budget."""
        if isinstance(value, WeightBudget):
            return value
        try:
            return WeightBudget.parse(str(value).strip())
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


class AlignmentType(SizeType):
    """A power of two of bytes."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the bytes."""
        alignment = super().convert(value, param, ctx)
        if alignment & (alignment - 1):
            self.fail(f"{alignment} is not a power of two", param, ctx)
        return alignment


class DimType(click.ParamType[tuple[str, int]]):
    """The value of a free dimension, such as `batch=1`."""

    name = "name=n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the name and the value."""
        name, equals, number = str(value).rpartition("=")
        if not (name and equals and _is_dimension(number)):
            self.fail(f"{value!r} is not NAME=N with N at least 1, such as batch=1", param, ctx)
        return name, int(number)


class ShapeType(click.ParamType[tuple[str, tuple[int, ...]]]):
    """The shape of a graph input, such as `image=1x3x224x224`."""

    name = "input=shape"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        """Return the name and the shape."""
        name, equals, shape = str(value).rpartition("=")
        dimensions = shape.split("x")
        if not (name and equals and all(map(_is_dimension, dimensions))):
            self.fail(
                f"{value!r} is not INPUT=SHAPE with dimensions of at least 1, "
                "such as image=1x3x224x224",
                param,
                ctx,
            )
        return name, tuple(map(int, dimensions))


class SecondsType(click.ParamType[float]):
    """A time above 0."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds."""
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is not a number of seconds above 0", param, ctx)
        return seconds


class PercentType(click.ParamType[float]):
    """A share of at least 0, such as `2%`."""

    name = "percent"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share: 0.02 for `2%`."""
        if isinstance(value, float):
            return value
        try:
            percent = float(str(value).strip().removesuffix("%"))
        except ValueError:
            percent = math.nan
        if not 0 <= percent < math.inf:
            self.fail(f"{value!r} is not a percentage of at least 0, such as 2%", param, ctx)
        return percent / 100


class AliasType(click.ParamType[tuple[AliasKind, ...]]):
    """What may share storage: `none`, or kinds such as `views,in-place` and `all,overlap`."""

    name = "kinds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[AliasKind, ...]:
        """Return the kinds, in the order they are defined."""
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text == "none":
            return ()
        kinds: set[str] = set()
        for word in text.split(","):
            if word != "all" and word not in tuple(AliasKind):
                known = ", ".join(("none", "all", *AliasKind))
                self.fail(f"{word!r} is not one of {known}", param, ctx)
            kinds.update(SAFE_KINDS if word == "all" else (word,))
        return tuple(kind for kind in AliasKind if kind in kinds)


def _is_dimension(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= 1


def _as_mapping(
    _context: click.Context, parameter: click.Parameter, pairs: Sequence[tuple[str, _Value]]
) -> Mapping[str, _Value]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise click.BadParameter("a name is given twice", param=parameter)
    return mapping


dim_option = click.option(
    "--dim",
    "dims",
    type=DimType(),
    multiple=True,
    callback=_as_mapping,
    metavar="NAME=N",
    help="Value of a free dimension; repeatable.",
)
shape_option = click.option(
    "--shape",
    "shapes",
    type=ShapeType(),
    multiple=True,
    callback=_as_mapping,
    metavar="INPUT=1x3x224x224",
    help="Shape of a graph input; repeatable.",
)
boundary_option = click.option(
    "--boundary",
    type=click.Choice([boundary.value for boundary in Boundary]),
    default=Boundary.INCLUDE.value,
    show_default=True,
    help="Whether graph inputs and outputs lie in the arena.",
)
align_option = click.option(
    "--align",
    "alignment",
    type=AlignmentType(),
    metavar="N",
    help=f"Bytes that every offset is a multiple of.  [default: {DEFAULT_ALIGNMENT}; "
    "a CSV states its own]",
)
strategy_option = click.option(
    "--strategy",
    "requested",
    metavar="NAME",
    default="best",
    show_default=True,
    help="What places the records; see `arenite strategies`.",
)
target_option = click.option(
    "--target",
    type=click.Choice(TARGETS),
    default=GENERIC,
    show_default=True,
    help="Whose records: the graph as written, or what a runtime places.",
)
_open_target_option = click.option(
    "--target",
    type=click.Choice(TARGETS),
    help=f"Whose records: the graph as written, or what a runtime places.  [default: {ARENITE}; "
    f"{GENERIC} where our runtime cannot run the model, for records alone, and with --boundary, "
    "--align or --alias]",
)
order_option = click.option(
    "--order",
    "order_name",
    type=click.Choice([order.name for order in ORDERS]),
    default="given",
    show_default=True,
    help="What orders the operators; `optimal` proves the least peak where it can.",
)
alias_option = click.option(
    "--alias",
    "aliases",
    type=AliasType(),
    default="none",
    show_default=True,
    metavar="KINDS",
    help=f"What may share storage: none, all, or some of {','.join(AliasKind)}; all leaves out "
    "overlap, which takes kernels that compute row by row.",
)
huffman_option = click.option(
    "--huffman/--no-huffman",
    default=True,
    show_default=True,
    help="Huffman-code the weights; without it they are larger, and read faster.",
)
weight_budget_option = click.option(
    "--weight-budget",
    type=WeightBudgetType(),
    metavar="SIZE|N%",
    help="Weights that may be resident in a run; the others are brought into the arena, a window "
    "at a time.",
)
capacity_option = click.option(
    "--capacity",
    type=SizeType(),
    metavar="SIZE",
    help="Bytes the arena may have, such as 64KiB.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    help="Seed of a strategy that draws random numbers.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Write JSON instead of text for people."
)


def time_limit_option(default: float | None, text: str) -> Callable[[_Function], _Function]:
    """Return the option `--time-limit`."""
    return click.option(
        "--time-limit",
        "time_limit_s",
        type=SecondsType(),
        default=default,
        show_default=default is not None,
        metavar="S",
        help=text,
    )


def refuse_beside(what: str, *names: str) -> None:
    """Return if the user gave none of these parameters of the command that runs.

    Args:
        what: Decides what they would.
        names: Of the parameters.

    Raises:
        UsageError: One is given.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{what} decides what {parameter.opts[-1]} would; leave that option out"
            )


@dataclass(frozen=True, slots=True)
class Reading:
    """How the model files of a command are read.

    Attributes:
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        boundary: Whether graph inputs and outputs lie in the arena.
        alignment: Bytes of every offset; None for the format's default.
        aliases: What may share storage.
        order_name: What orders the operators.
        target: Whose records; None is for the command to decide.
        weight_budget: Weights that may be resident in a run; None for all.
        time_limit_s: Seconds the search of an order may take; None for as many as it takes.
    """

    dims: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    boundary: Boundary
    alignment: int | None
    aliases: tuple[AliasKind, ...]
    order_name: str
    target: str | None
    weight_budget: WeightBudget | None = None
    time_limit_s: float | None = field(default=None, compare=False)

    def read(self, path: Path, capacity: int | None = None) -> Source:
        """Return what the file holds.

        Raises:
            ModelError: It cannot be planned.
            UsageError: Something is asked for that the target decides itself.
        """
        self.check()
        if self.target not in (None, GENERIC):
            source = read_for_runtime(
                self.target, path, self.dims, self.shapes, self.order, self.weight_budget
            )
            return replace(source, problem=source.problem.with_capacity(capacity))
        return read(
            path,
            dims=self.dims,
            shapes=self.shapes,
            boundary=self.boundary,
            alignment=self.alignment,
            capacity=capacity,
            order=self.order,
            aliases=self.aliases,
        )

    @property
    def order(self) -> FindOrder | None:
        """What finds the order; None for the model's own."""
        return order_finder(self.order_name, self.time_limit_s)

    def check(self) -> None:
        """Return if the options go together.

        Raises:
            UsageError: Something is asked for that the target decides itself.
        """
        if self.target in (None, GENERIC):
            if self.weight_budget is not None:
                raise click.UsageError(f"--weight-budget is for --target {ARENITE}")
            return
        is_open = OPEN_FIELDS.get(self.target, ())
        plain = Reading({}, {}, Boundary.INCLUDE, None, (), "given", self.target)
        if self != replace(plain, **{name: getattr(self, name) for name in is_open}):
            decided = [word for name, word in _DECIDED.items() if name not in is_open]
            raise click.UsageError(
                f"--target {self.target} decides {', '.join(decided[:-1])} and {decided[-1]} "
                "itself; leave those options out"
            )


_DECIDED = {
    "dims": "dimensions", "boundary": "boundary", "alignment": "alignment", "aliases": "sharing",
    "order_name": "order", "weight_budget": "weight budget",
}  # fmt: skip


def reading_options(function: Callable[Concatenate[Reading, _P], _R]) -> Callable[..., _R]:
    """Add the options of `Reading` and hand them over as the first argument."""
    return _with_reading(function, target_option)


def open_reading_options(function: Callable[Concatenate[Reading, _P], _R]) -> Callable[..., _R]:
    """Add the options of `Reading`, whose target the command decides if none is named."""
    return _with_reading(function, _open_target_option)


def _with_reading(
    function: Callable[Concatenate[Reading, _P], _R],
    target_option: Callable[[Callable[..., _R]], Callable[..., _R]],
) -> Callable[..., _R]:
    @dim_option
    @shape_option
    @boundary_option
    @align_option
    @alias_option
    @order_option
    @weight_budget_option
    @target_option
    @functools.wraps(function)
    def with_reading(
        dims: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        boundary: str,
        alignment: int | None,
        aliases: tuple[AliasKind, ...],
        order_name: str,
        weight_budget: WeightBudget | None,
        target: str | None,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        reading = Reading(
            dims, shapes, Boundary(boundary), alignment, aliases, order_name, target,
            weight_budget,
        )  # fmt: skip
        return function(reading, *args, **kwargs)

    return with_reading
