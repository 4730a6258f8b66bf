"""The tables of the commands."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from arenite.planner.policy import Policy
from arenite.planner.strategy import Strategy


def facts(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Return labels and what they say, one a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, value)
    return table


def listing(columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Return a table with a header; columns that end in a `>` hold numbers.

    Nothing is cut off: what is too long for the terminal is folded.
    """
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in columns:
        numbers = column.endswith(">")
        table.add_column(
            column.removesuffix(">"),
            justify="right" if numbers else "left",
            no_wrap=numbers,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def policies_table(policies: Iterable[Policy]) -> Table:
    """Return the table of policies."""
    return listing(
        ("policy", "decides", "source"),
        (
            (Text(policy.name, "bold", no_wrap=True), policy.decides, policy.source)
            for policy in policies
        ),
    )


def strategies_table(strategies: Iterable[Strategy]) -> Table:
    """Return the table of strategies."""
    return listing(
        ("name", "kind", "complexity", "source"),
        (
            (
                Text(strategy.name, "bold", no_wrap=True),
                strategy.kind.value,
                strategy.complexity,
                strategy.source,
            )
            for strategy in strategies
        ),
    )
