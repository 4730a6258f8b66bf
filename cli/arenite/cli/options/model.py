"""Options of how a model is read, and over which memories it is spread."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

import click

from arenite.cli.options.types import (
    ALIASES,
    ALIGNMENT,
    DIM,
    INPUT_VALUE,
    RANGED_DIM,
    RANGED_SHAPE,
    SHAPE,
    SIZES,
    WEIGHT_BUDGET,
    Parsed,
    size_of,
)
from arenite.pipeline.base import Reading
from arenite.pipeline.targets import ARENITE, GENERIC, TARGETS
from arenite.planner import DEFAULT_ALIGNMENT, AliasKind, Boundary, Dims, Memory, RangedShapes
from arenite.planner.errors import SizeError
from arenite.planner.programs import CostedMemory, costed
from arenite.planner.sizes import read_lengths
from arenite.runtime.rewrites import Activations, Caches, WeightBudget
from arenite.strategies import ORDERS

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


def _as_lengths(
    context: click.Context, parameter: click.Parameter, pairs: Sequence[tuple[str, str]]
) -> Dims:
    try:
        return read_lengths(_as_mapping(context, parameter, pairs))
    except SizeError as error:
        raise click.BadParameter(error.reason, param=parameter) from error


def _binding(
    name: str,
    kind: Parsed[tuple[str, _Value]],
    metavar: str,
    purpose: str,
    callback: Callable[..., object] = _as_mapping,
) -> Callable[[_F], _F]:
    """Return the option `--NAME` that gives something of the model a value, for each by name."""
    return click.option(
        f"--{name}",
        f"{name}s",
        type=kind,
        multiple=True,
        callback=callback,
        metavar=metavar,
        help=f"{purpose} Repeatable.",
    )


dim_option = _binding("dim", DIM, "NAME=N", "Set a free dimension of the model.")
shape_option = _binding("shape", SHAPE, "INPUT=1x3x224x224", "Set the shape of a graph input.")
_ranged_dim_option = _binding(
    "dim",
    RANGED_DIM,
    "NAME=N|LOW..HIGH[:STEP]|A+B",
    "Set a free dimension of the model, or its range for one plan of all its sizes: seq=1..512. A "
    "dimension may be another or a sum: total=past+seq.",
    callback=_as_lengths,
)
_ranged_shape_option = _binding(
    "shape",
    RANGED_SHAPE,
    "INPUT=1x3x224x224",
    "Set the shape of a graph input; an axis may have a range: 1x3x32..1080x32..1920.",
)
_value_option = _binding(
    "value",
    INPUT_VALUE,
    "INPUT=NUMBER",
    "Fix a graph input at a number; the model then has no such input.",
)


def size_option(purpose: str) -> Callable[[_F], _F]:
    """Return the option `--size` of values of the dimensions that have a range."""
    return click.option(
        "--size", "points", type=SIZES, multiple=True, metavar="NAME=N[,NAME=N]",
        help=f"{purpose} Dimensions that are not named have their highest value. Repeatable.",
    )  # fmt: skip


order_option = click.option(
    "--order",
    "order_name",
    type=click.Choice([order.name for order in ORDERS]),
    metavar="NAME",
    help=f"Order of the operators: {', '.join(order.name for order in ORDERS)}. 'optimal' "
    "proves the lowest peak where it can.  [default: best]",
)
_target_option = click.option(
    "--target",
    type=click.Choice(list(TARGETS)),
    metavar="NAME",
    help="Runtime whose memory to plan: "
    f"{', '.join(f'{each.name} ({each.summary})' for each in TARGETS.values())}.  "
    f"[default: {ARENITE.name}; {GENERIC.name} if our runtime cannot run the model, for a CSV, "
    "and with --boundary, --align or --alias]",
)
boundary_option = click.option(
    "--boundary",
    type=click.Choice([boundary.value for boundary in Boundary]),
    default=Boundary.INCLUDE.value,
    show_default=True,
    help="Whether graph inputs and outputs live in the arena.",
)
_align_option = click.option(
    "--align",
    "alignment",
    type=ALIGNMENT,
    metavar="N",
    help="Align every offset to N bytes, a power of two.  "
    f"[default: {DEFAULT_ALIGNMENT} for the graph as written, 64 for our runtime; a CSV states "
    "its own]",
)
_alias_option = click.option(
    "--alias",
    "aliases",
    type=ALIASES,
    metavar="KINDS",
    help=f"Which tensors may share storage: none, all, or a list of {', '.join(AliasKind)}. "
    "'all' excludes overlap, which needs kernels that compute row by row.  [default: all]",
)


def sizes_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add `--dim`, `--shape` and `--value`; they are the first argument, a `Reading`."""

    @_ranged_dim_option
    @_ranged_shape_option
    @_value_option
    @functools.wraps(function)
    def with_sizes(
        dims: Dims,
        shapes: RangedShapes,
        values: Mapping[str, float],
        *args: object,
        **kwargs: object,
    ) -> _R:
        return function(Reading(dims, shapes, values), *args, **kwargs)

    return with_sizes


def reading_options(function: Callable[Concatenate[Reading, _P], _R]) -> Callable[..., _R]:
    """Add all options of `Reading`, which is the first argument."""

    @_target_option
    @order_option
    @sizes_options
    @boundary_option
    @_align_option
    @_alias_option
    @weight_budget_option
    @activations_option
    @cache_option
    @functools.wraps(function)
    def with_reading(
        sizes: Reading,
        boundary: str,
        alignment: int | None,
        aliases: tuple[AliasKind, ...] | None,
        order_name: str | None,
        weight_budget: WeightBudget | None,
        activations: Activations | None,
        cache: Caches | None,
        target: str | None,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        reading = replace(
            sizes, boundary=Boundary(boundary), alignment=alignment, aliases=aliases,
            order_name=order_name, target=target, weight_budget=weight_budget,
            activations=activations, cache=cache,
        )  # fmt: skip
        return function(reading, *args, **kwargs)

    return with_reading


huffman_option = click.option(
    "--huffman/--no-huffman",
    default=True,
    show_default=True,
    help="Huffman-code the weights; without it the file is larger but decodes faster.",
)
weight_budget_option = click.option(
    "--weights",
    "weight_budget",
    type=WEIGHT_BUDGET,
    metavar="SIZE|N%[,in-turn|,beside]",
    help="Keep at most this many bytes of weights resident and stream the others from the file: "
    "',beside' loads them during the computation, ',in-turn' between its steps.  [default: all "
    "resident; the faster of the two ways]",
)

activations_option = click.option(
    "--activations",
    type=click.Choice([str(each) for each in Activations]),
    callback=lambda _context, _parameter, name: None if name is None else Activations(name),
    help="Type that results and weights are stored as: fp16 halves their bytes and rounds each; "
    "operators compute with 32 bits, some of them with 16 on ARMv8.2.  "
    "[default: those of the model]",
)
cache_option = click.option(
    "--cache",
    type=click.Choice([str(each) for each in Caches]),
    callback=lambda _context, _parameter, name: None if name is None else Caches(name),
    help="Type that caches of keys and values that grow are stored as: fp16 takes half "
    "the bytes, int8 a bit more than a quarter; attention computes with 32 bits.  [default: that "
    "of the model]",
)


_FORM = (
    "NAME=SIZE, such as sram=256KiB or psram=8MiB,read=4,write=6, or NAME=any for a memory "
    "without limit"
)


def _memory(text: str) -> tuple[Memory, float | None, float | None]:
    """Return a memory such as `psram=8MiB,read=4,write=6`, with the costs that are stated."""
    size, *costs = text.split(",")
    name, equals, capacity = size.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not {_FORM}")
    memory = Memory(name, None if capacity == "any" else size_of(capacity))
    stated: dict[str, float] = {}
    for cost in costs:
        kind, equals, number = cost.partition("=")
        if kind not in ("read", "write") or kind in stated:
            raise ValueError(f"{text!r} is not {_FORM}")
        stated[kind] = _cost(number)
    return memory, stated.get("read"), stated.get("write")


def _cost(text: str) -> float:
    try:
        cost = float(text)
    except ValueError:
        cost = math.nan
    if not 0 <= cost < math.inf:
        raise ValueError(f"a byte cannot cost {text!r}; a number from 0 expected")
    return cost


def _costed(
    context: click.Context,
    parameter: click.Parameter,
    stated: Sequence[tuple[Memory, float | None, float | None]],
) -> tuple[CostedMemory, ...]:
    names = [memory.name for memory, *_ in stated]
    if len(set(names)) < len(names):
        raise click.BadParameter("a name is given twice", context, parameter)
    return costed(stated)


memories_option = click.option(
    "--memory",
    "memories",
    type=Parsed("memory", _memory),
    multiple=True,
    callback=_costed,
    metavar="NAME=SIZE[,read=COST][,write=COST]",
    help="Spread the tensors over memories such as sram=256KiB and psram=8MiB,read=4,write=6, so "
    "that reading and writing costs least. A byte costs 1 in the first memory, 2 in the second "
    "and so on, unless stated. Repeatable.",
)
