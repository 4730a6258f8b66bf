"""How many threads run a model."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from arenite.cli.options.types import NumberType

_Function = TypeVar("_Function", bound=Callable[..., Any])


def threads_option(help_text: str) -> Callable[[_Function], _Function]:
    """Return the option `--threads`, 1 unless the user says otherwise."""
    return click.option(
        "--threads", type=NumberType(1, 256), default=1, show_default=True, metavar="N",
        help=help_text,
    )  # fmt: skip
