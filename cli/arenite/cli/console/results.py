"""The results of a command: one JSON document or text, and the files beside it."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.files import check_destination
from arenite.cli.console.streams import output
from arenite.planner.files import write_atomically


class Results:
    """Where one command writes what it found: every command writes through here alone."""

    def __init__(self, *, as_json: bool) -> None:
        """Start without files.

        Args:
            as_json: Whether standard output gets JSON instead of text.
        """
        self._as_json = as_json
        self._reserved: dict[Path, Path] = {}
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
            check_destination(path, *read)
            whole = path.resolve()
            if whole in self._reserved:
                raise click.UsageError(f"two outputs name the same file: {path}")
            self._reserved[whole] = path

    def write(self, path: Path | None, content: Callable[[], str | bytes]) -> None:
        """Write a file, whole or not at all.

        Args:
            path: The file; None where the user wants none.
            content: Makes what is in it; text becomes UTF-8.

        Raises:
            OutputError: It cannot be written.
        """
        if path is None:
            return
        made = content()
        data = made.encode("utf-8", errors="replace") if isinstance(made, str) else made
        write_atomically(path, data)
        self.written.append(path)

    def show(self, document: Mapping[str, object], text: Callable[[Console], None]) -> None:
        """Write to standard output.

        Args:
            document: For programs.
            text: Prints the same for people.
        """
        if self._as_json:
            click.echo(json.dumps(document, indent=2, allow_nan=False))
        else:
            text(output())
