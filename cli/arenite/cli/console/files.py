"""Files that a command will write, checked before the long work."""

import os
from pathlib import Path

from arenite.planner.errors import OutputError


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
            raise OutputError("this is an input; choose another name for the output", path=path)
