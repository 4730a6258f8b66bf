"""Text that is safe to show: names come from files that nobody vouches for."""

from rich.text import Text


def printable(text: str) -> str:
    """Return `text` with everything a terminal would act on escaped."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def one_line(text: str) -> str:
    """Return `text` on one printable line."""
    return printable(" ".join(text.splitlines()))


def name(text: str, style: str = "") -> Text:
    """Return a name from a file as a cell or part of a line."""
    return Text(printable(text), style, overflow="fold")


def elided(text: str, length: int) -> str:
    """Return `text` with its middle left out where it is longer than `length`."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"
