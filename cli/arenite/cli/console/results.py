"""The results of a command: one JSON document or text, and the files beside it.

A file named `-` is standard output; what people read then goes to standard error.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from rich.console import Console

from arenite.cli.console.streams import output, text_beside
from arenite.planner.errors import OutputError
from arenite.planner.files import write_atomically

STANDARD_OUTPUT: Final = Path("-")


class Results:
    """The results of one command: every command writes through this class only."""

    def __init__(self, *, as_json: bool) -> None:
        """Start without files."""
        self._as_json = as_json
        self._reserved: dict[Path, Path] = {}
        self._gives_file = False
        self.written: list[Path] = []

    def reserve(self, *paths: Path | None, sources: Iterable[Path | None] = ()) -> None:
        """Check that files can be written; called before the long work starts.

        Args:
            paths: The files to be; None where the user wants none.
            sources: Files that the command reads, which must not be overwritten.

        Raises:
            OutputError: One cannot be written, or is a source.
            UsageError: Two are the same file.
        """
        read = [source for source in sources if source is not None]
        for path in paths:
            if path is None:
                continue
            if path != STANDARD_OUTPUT:
                check_destination(path, *read)
            elif self._as_json:
                raise click.UsageError("standard output cannot have a file and --json")
            else:
                self._gives_file = True
            whole = path.resolve()
            if whole in self._reserved:
                raise click.UsageError(f"two outputs name the same file: {path}")
            self._reserved[whole] = path

    def write(self, path: Path | None, content: Callable[[], str | bytes]) -> None:
        """Write a file, whole or not at all.

        Args:
            path: The file; None where the user wants none.
            content: Makes the contents; text becomes UTF-8.
        """
        if path is None:
            return
        made = content()
        data = made.encode("utf-8", errors="replace") if isinstance(made, str) else made
        if path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(data)
        else:
            write_atomically(path, data)
        self.written.append(path)

    @contextmanager
    def file(self, path: Path) -> Iterator[Path]:
        """Give the file to write for one that is too large to hold, or must be loaded first.

        Yields:
            The same, or a temporary file for standard output, which it is copied to.
        """
        if path != STANDARD_OUTPUT:
            yield path
            return
        with TemporaryDirectory(prefix="arenite-") as folder:
            whole = Path(folder) / "output"
            yield whole
            with whole.open("rb") as stream:
                shutil.copyfileobj(stream, sys.stdout.buffer)

    def show(self, document: Mapping[str, object], text: Callable[[Console], None]) -> None:
        """Write to standard output, or to standard error if a file goes there.

        Args:
            document: For programs.
            text: Prints the same for people.
        """
        if self._as_json:
            click.echo(json.dumps(document, indent=2, allow_nan=False))
        else:
            text(self.console())

    def console(self) -> Console:
        """Return where text for people goes."""
        return text_beside() if self._gives_file else output()


def check_destination(path: Path, *sources: Path) -> None:
    """Return if a file can be written to `path`; asked before the long work starts.

    Args:
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
            raise OutputError("this is an input; choose another name for the output", path=path)
