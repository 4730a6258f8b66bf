"""Names from files as rich text."""

from rich.text import Text

from arenite.pipeline.base.text import printable


def name(text: str, style: str = "") -> Text:
    """Return a name from a file as a cell or part of a line."""
    return Text(printable(text), style, overflow="fold")
