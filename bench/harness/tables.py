"""Rows of text as a table."""

from collections.abc import Iterable, Sequence

from rich.table import Table


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    num_names: int = 1,
    caption: str | None = None,
    footer: Sequence[str] | None = None,
) -> Table:
    """Return a table: names to the left, figures to the right.

    Args:
        title: Above it.
        columns: Their heads.
        rows: A text for each column.
        num_names: Columns from the left that hold names.
        caption: Below it.
        footer: A last row of sums, if there is one.
    """
    made = Table(title=title, caption=caption, show_footer=footer is not None)
    for index, head in enumerate(columns):
        is_name = index < num_names
        made.add_column(
            head,
            footer=footer[index] if footer else "",
            justify="left" if is_name else "right",
            no_wrap=is_name,
        )
    for row in rows:
        made.add_row(*row)
    return made
