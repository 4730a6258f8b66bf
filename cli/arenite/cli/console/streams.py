"""Standard output for results, standard error for everything else."""

import sys
from typing import TextIO

import click
from rich.console import Console

from arenite.pipeline.base import one_line

_PIPED_WIDTH = 100_000
"""Columns where no terminal limits a line: no name is cut or folded."""
_DRAWING_WIDTHS = (40, 120)
_PLAIN_DRAWING_WIDTH = 80


class _Console(Console):
    """A console that does not interpret text and raises for a broken pipe."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def output() -> Console:
    return _console(sys.stdout)


def text_beside() -> Console:
    """Return the console of results for people where standard output has a file."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else _PIPED_WIDTH
    return _Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def progress() -> Console:
    return _Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


def note(text: str) -> None:
    """Tell the user something on standard error, in one line."""
    click.echo(one_line(f"note: {text}"), err=True)


def complain(text: str) -> None:
    """State an error on standard error, in one line; the command goes on."""
    click.echo(one_line(f"error: {text}"), err=True)


def has_colour(console: Console) -> bool:
    """Tell whether colours reach the reader."""
    return console.color_system is not None and not console.no_color


def drawing_width(console: Console) -> int:
    """Return the columns a drawing may take."""
    if not console.is_terminal:
        return _PLAIN_DRAWING_WIDTH
    least, most = _DRAWING_WIDTHS
    return max(least, min(console.width, most))
