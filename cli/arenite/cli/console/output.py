"""Where results, progress and files go."""

import json
import os
import sys
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.render.text import one_line
from arenite.planner.errors import OutputError
from arenite.planner.files import write_atomically

_PIPED_WIDTH = 100_000
"""Columns where no terminal limits a line: no name is cut or folded."""
_DRAWING_WIDTHS = (40, 120)
_PLAIN_DRAWING_WIDTH = 80


class _Console(Console):
    """A console that takes text as it is and leaves a broken pipe to the caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def results() -> Console:
    """Return the console of standard output."""
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return _Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def progress() -> Console:
    """Return the console of standard error."""
    return _Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


def note(text: str) -> None:
    """Tell the user something on standard error, in one line."""
    click.echo(one_line(f"note: {text}"), err=True)


def has_colour(console: Console) -> bool:
    """Tell whether colours reach the reader."""
    return console.color_system is not None and not console.no_color


def drawing_width(console: Console) -> int:
    """Return the columns a drawing may take."""
    if not console.is_terminal:
        return _PLAIN_DRAWING_WIDTH
    least, most = _DRAWING_WIDTHS
    return max(least, min(console.width, most))


def emit_json(value: dict[str, object]) -> None:
    """Write one JSON document to standard output."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def write_result(path: Path, text: str) -> None:
    """Write a file in UTF-8, whole or not at all.

    Raises:
        OutputError: It cannot be written.
    """
    write_atomically(path, text.encode("utf-8", errors="replace"))


def check_destination(path: Path, *sources: Path) -> None:
    """Return if a file can be written to `path`; asked before the long work starts.

    Args:
        path: The file to be.
        sources: Files that must not be overwritten.

    Raises:
        OutputError: The folder is missing or read-only, or `path` is something else
            than a file, or one of `sources`.
    """
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"cannot be written: there is no folder {str(folder)!r}", path=path)
    if path.exists() and not path.is_file():
        raise OutputError("cannot be written: this is not a regular file", path=path)
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot be written: the folder {str(folder)!r} is read-only", path=path)
    for source in sources:
        if path.exists() and source.exists() and path.samefile(source):
            raise OutputError("this file is read; choose another name for the output", path=path)
