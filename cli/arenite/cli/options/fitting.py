"""Options that trade time for memory: budgets, machines and links."""

from collections.abc import Callable
from typing import TypeVar

import click

from arenite.cli.options.types import Parsed
from arenite.pipeline.making import HERE
from arenite.planner import LEAST, Budget, Link
from arenite.planner.programs import PRESETS

_F = TypeVar("_F", bound=Callable[..., object])


def _budgets(text: str) -> tuple[Budget, ...]:
    words = [word.strip() for word in text.split(",")]
    try:
        found = [LEAST if word == str(LEAST) else Budget.parse(word) for word in words]
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{error}, or 75%,50%,{LEAST}") from error
    return tuple(dict.fromkeys(found))


link_option = click.option(
    "--link",
    type=Parsed("link", Link.parse),
    metavar="SPEED",
    help="Speed of the link to the memory that tensors are spilled to: 12GB/s, or out "
    "and back, 24.5MB/s:45.5MB/s.  [default: the machine's]",
)


def budget_options(function: _F) -> _F:
    """Add the options `--policies`, `--machine` and `--link`."""
    for option in (
        link_option,
        click.option(
            "--machine",
            type=click.Choice([HERE, *PRESETS]),
            help="Machine whose speeds predict times: here, as `arenite calibrate` measured them; "
            "pcie, a desktop GPU; sd, a small board.  "
            "[default: here where it was measured, else pcie]",
        ),
        click.option(
            "--policies",
            "budgets",
            type=Parsed("budgets", _budgets),
            metavar="BUDGETS",
            help="Compare the policies that trade time for memory, at budgets of the arena such "
            "as 75%,50%,4MiB,least.",
        ),
    ):
        function = option(function)
    return function
