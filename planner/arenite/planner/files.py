"""Files read with care, written whole or not at all, and their digests."""

import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

from arenite.planner.errors import FileError, ModelFormatError, OutputError

Pieces: TypeAlias = bytes | Iterable[bytes | memoryview]


def write_atomically(path: Path, data: Pieces, *, durable: bool = False) -> None:
    """Write a file whole or not at all: to a name beside it that then takes its place.

    A link is followed and stays, its target is written. A file that was there keeps its
    permissions and, where that is allowed, its owner; a new one gets those of any new file.

    Args:
        path: The file.
        data: Its bytes, whole or piece by piece.
        durable: Wait until the disk has it, so that it outlasts a loss of power.

    Raises:
        OutputError: It cannot be written, or is something else than a regular file, such as
            a folder, a pipe or a terminal; what was there is as it was.
    """
    try:
        target, old = _target(path)
        temporary = target.with_name(f".arenite-{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines((data,) if isinstance(data, bytes) else data)
                if old is not None:
                    with suppress(PermissionError):
                        os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                if durable:
                    stream.flush()
                    os.fsync(descriptor)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path=path) from error


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file that `path` leads to, and its state if it exists."""
    target = Path(os.path.realpath(path))
    try:
        old = path.stat()
    except FileNotFoundError:
        return target, None
    # A link to an open file, as /dev/stdout is one, need not lead to any name of it.
    if not stat.S_ISREG(old.st_mode) or not target.exists() or not target.samefile(path):
        raise OutputError("cannot be written: this is not a regular file", path=path)
    if not os.access(target, os.W_OK):
        raise OutputError("cannot be written: this file is read-only", path=path)
    return target, old


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(
    path: Path,
    most_mebibytes: int,
    malformed: type[FileError],
    unreadable: type[FileError] | None = None,
) -> Any:
    """Return what a JSON file holds, of whatever shape.

    Refused beside what is no JSON: text that is not UTF-8 or not Unicode, a key that stands
    twice in one object, numbers that are not finite or have thousands of digits, and nesting
    that takes more than the stack.

    Args:
        path: The file.
        most_mebibytes: A larger file is not read.
        malformed: Raised where it holds something else.
        unreadable: Raised where it cannot be read or is too large; `malformed` if None.
    """
    data = _read_capped(path, most_mebibytes, unreadable or malformed)
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=_without_duplicates,
            parse_float=_finite,
            parse_constant=_finite,
        )
        # Half of a surrogate pair can be escaped in JSON, but is no text.
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise malformed(f"not JSON: {_in_one_line(error)}", path=path) from error
    return value


def _read_capped(path: Path, most_mebibytes: int, unreadable: type[FileError]) -> bytes:
    most = most_mebibytes << 20
    try:
        # Opening a pipe would wait for who writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise unreadable("cannot be read: this is not a regular file", path=path)
            data = stream.read(most + 1)
    except OSError as error:
        raise unreadable(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > most:
        raise unreadable(f"larger than {most_mebibytes} MiB", path=path)
    return data


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value: dict[str, object] = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"the key {name!r} stands twice in one object")
        value[name] = item
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is no finite number")
    return value


def _in_one_line(error: Exception) -> str:
    """Return why, as short as a message may be: a decoder quotes nothing long."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, UnicodeError):
        return "its text is not UTF-8"
    return str(error)


def read_model(path: Path) -> bytes:
    """Return the bytes of a model file.

    Raises:
        ModelFormatError: It is absent, not a regular file, or may not be read.
    """
    with _opened_model(path) as stream:
        return stream.read()


def model_digest(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a model file, read piece by piece.

    Raises:
        ModelFormatError: It is absent, not a regular file, or may not be read.
    """
    with _opened_model(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _opened_model(path: Path) -> Iterator[BufferedReader]:
    if path.exists() and not path.is_file():
        raise ModelFormatError("this is not a regular file; give the model file", path=path)
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise ModelFormatError(f"cannot be read: {error.strerror}", path=path) from error
