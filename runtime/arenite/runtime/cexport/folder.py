"""Write the files of an export into a folder, all of them or none."""

import ctypes
import errno
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from arenite.planner.errors import OutputError

MARKER = "arenite-export.json"
"""Lists the files of an export, so that the next one may replace them."""


def check_folder(folder: Path, *sources: Path) -> None:
    """Return if an export can be written to `folder`; asked before the long work starts.

    Args:
        folder: It does not exist, is empty, or holds a previous export.
        sources: Files that the export reads.

    Raises:
        OutputError: It cannot be.
    """
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise OutputError(f"cannot be written: there is no folder {str(parent)!r}", path=folder)
    if not os.access(parent, os.W_OK):
        raise OutputError(
            f"cannot be written: the folder {str(parent)!r} is read-only", path=folder
        )
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError("cannot be written: this is not a folder", path=folder)
    if any(folder.iterdir()) and _files_of(folder) is None:
        raise OutputError(
            "this folder holds files that are no export; choose another, or empty it", path=folder
        )
    for source in sources:
        if source.exists() and source.resolve().is_relative_to(folder.resolve()):
            raise OutputError(f"the input {str(source)!r} is in this folder", path=folder)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write an export, in the place of a previous one if there is one.

    The files are written beside the folder, which is then exchanged as a whole, in one step
    where the system can. What the user has added to a previous export, such as objects of a
    build, is kept.

    Raises:
        OutputError: It cannot be written; what was there is unchanged.
    """
    check_folder(folder)
    listed = sorted({*files, MARKER})
    marker = (json.dumps({"files": listed}, indent=2) + "\n").encode()
    folder = folder.absolute()
    new, old = (folder.with_name(f".arenite-{secrets.token_hex(8)}") for _ in range(2))
    try:
        for name, data in {**files, MARKER: marker}.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if folder.exists():
            _keep_added(folder, new)
        if not (folder.exists() and exchange(new, folder)):
            _put_in_place(new, folder, old)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror or error}", path=folder) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def _put_in_place(new: Path, folder: Path, old: Path) -> None:
    """Give the new folder its name in two steps; who is killed in between leaves the old one."""
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        with suppress(OSError):
            old.rename(folder)
        raise


def _keep_added(folder: Path, new: Path) -> None:
    """Copy what the previous export did not write, unless the new one writes it."""
    written = _files_of(folder) or frozenset()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder or name.as_posix() in written or (new / name).exists():
            continue
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, new / name, follow_symlinks=False)


def _files_of(folder: Path) -> frozenset[str] | None:
    """Return the files of the export in a folder, None if there is none."""
    try:
        stated = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(stated, list) or not all(isinstance(each, str) for each in stated):
        return None
    return frozenset(stated)


_FROM_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def exchange(one: Path, other: Path) -> bool:
    """Let two folders take each other's name, so that neither name is without one for a moment.

    Returns:
        False where the system or the file system cannot; nothing has changed then.

    Raises:
        OSError: It was refused.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
