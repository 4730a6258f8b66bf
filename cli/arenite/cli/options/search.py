"""How a plan is searched for: strategy, capacity, time, seed."""

from collections.abc import Callable
from typing import TypeVar

import click

from arenite.cli.options.types import NumberType, SecondsType, SizeType

_Function = TypeVar("_Function", bound=Callable[..., object])

strategy_option = click.option(
    "--strategy",
    "requested",
    metavar="NAME",
    default="best",
    show_default=True,
    help="Strategy that places the tensors; see 'arenite strategies'.",
)
capacity_option = click.option(
    "--capacity",
    type=SizeType(),
    metavar="SIZE",
    help="Fail if the arena does not fit in SIZE, such as 64KiB.",
)
seed_option = click.option(
    "--seed",
    type=NumberType(),
    metavar="N",
    help="Seed for strategies that draw random numbers.",
)


def time_limit_option(
    default: float | None = None,
    text: str = "Stop each search, of an order or a placement, after S seconds.",
) -> Callable[[_Function], _Function]:
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
