"""Options of what trades time for memory: budgets, machines and links."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import click

from arenite.cli.planning.costs import FLOAT, MachineCosts
from arenite.planner.budget import LEAST, Budget
from arenite.planner.costs import PRESETS, Costs, Link

HERE, _DEFAULT = "here", "pcie"

_F = TypeVar("_F", bound=Callable[..., object])


class BudgetsType(click.ParamType[tuple[Budget, ...]]):
    """Budgets, such as `75%,50%`, `4MiB` or `least`."""

    name = "budgets"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Budget, ...]:
        """Return the budgets, each once."""
        if isinstance(value, tuple):
            return value
        try:
            words = [word.strip() for word in str(value).split(",")]
            found = [LEAST if word == str(LEAST) else Budget.parse(word) for word in words]
        except (ValueError, OverflowError) as error:
            self.fail(f"{error}, or 75%,50%,{LEAST}", param, ctx)
        return tuple(dict.fromkeys(found))


class LinkType(click.ParamType[Link]):
    """The speed of a link, such as `12GB/s` or `24.5MB/s:45.5MB/s`."""

    name = "link"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Link:
        """Return the link."""
        if isinstance(value, Link):
            return value
        try:
            return Link.parse(str(value))
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


link_option = click.option(
    "--link",
    type=LinkType(),
    metavar="SPEED",
    help="Speed of the link to the memory that tensors are spilled to: 12GB/s, or out "
    "and back, 24.5MB/s:45.5MB/s.  [default: the machine's]",
)


def budget_options(function: _F) -> _F:
    """Add the options `--budget`, `--machine` and `--link`."""
    for option in (
        link_option,
        click.option(
            "--machine",
            type=click.Choice([HERE, *PRESETS]),
            help="Whose speeds predict times: here, what `arenite calibrate` measured; pcie, a "
            "desktop GPU; sd, a small board.  [default: here where it was measured, else pcie]",
        ),
        click.option(
            "--budget",
            "budgets",
            type=BudgetsType(),
            metavar="BUDGETS",
            help="Compare what trades time for memory, at budgets such as 75%,50%,4MiB,least.",
        ),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class StatedCosts:
    """Costs, and where they come from.

    Attributes:
        costs: The costs.
        words: Whose they are, for people.
        link_origin: Whether the link is stated, measured or assumed.
    """

    costs: Costs
    words: str
    link_origin: str


def costs_of(machine: str | None, link: Link | None) -> StatedCosts:
    """Return the costs of a machine for models of floats, with another link if one is given.

    Args:
        machine: A preset, or this one; None for this one where it was measured.
        link: What the user states of the link.

    Raises:
        CostsFileError: What is known of this machine is damaged.
    """
    known = MachineCosts.known() if machine in (None, HERE) else None
    if known is not None and (machine == HERE or known.by_type):
        found = StatedCosts(known.of(FLOAT), known.words, known.link_origin)
    else:
        name = machine or _DEFAULT
        found = StatedCosts(PRESETS[name], f"speeds of {name}, stated", "stated")
    if link is None:
        return found
    return StatedCosts(replace(found.costs, link=link), found.words, "stated")
