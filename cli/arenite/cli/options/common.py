"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from arenite.cli.options.types import SECONDS, SIZE, number_type


def refuse_beside(what: str, *names: str) -> None:
    """Return if the user gave none of these parameters of the command that runs.

    Args:
        what: Decides the values of these options.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{what} decides {parameter.opts[-1]}; leave that option out")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def threads_option(help_text: str) -> Callable[[_Function], _Function]:
    """Return the option `--threads`, 1 unless the user says otherwise."""
    return click.option(
        "--threads", type=number_type(1, 256), default=1, show_default=True, metavar="N",
        help=help_text,
    )  # fmt: skip


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
    type=SIZE,
    metavar="SIZE",
    help="Fail if the arena does not fit in SIZE, such as 64KiB.",
)
seed_option = click.option(
    "--seed", type=number_type(), metavar="N", help="Seed for strategies that draw random numbers."
)


def time_limit_option(
    default: float | None = None,
    text: str = "Stop each search, of an order or a placement, after S seconds.",
) -> Callable[[_Function], _Function]:
    return click.option(
        "--time-limit",
        "time_limit_s",
        type=SECONDS,
        default=default,
        show_default=default is not None,
        metavar="S",
        help=text,
    )
