"""Reading files within limits, writing them whole or not at all, and hashing them."""

import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

from arenite.planner.errors import FileError, ModelFormatError, OutputError

Pieces: TypeAlias = bytes | Iterable[bytes | memoryview]


def write_atomically(
    path: Path, data: Pieces, *, durable: bool = False, check: Callable[[Path], None] | None = None
) -> None:
    """Write a file whole or not at all, by way of a temporary file that is then renamed.

    A symbolic link is followed: its target is replaced, the link stays. An existing file
    keeps its permissions and, where the system allows it, its owner; a new one gets the same
    permissions as from a plain `open`.

    Args:
        data: Its bytes, whole or piece by piece.
        durable: Flush to disk before returning, so that it survives a power failure.
        check: Called with the complete temporary file; if it raises, nothing is written.

    Raises:
        OutputError: It cannot be written, or is not a regular file but, say, a folder, a
            pipe or a terminal. Whatever was there is unchanged.
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
            if check is not None:
                check(temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path=path) from error


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file that `path` refers to, links resolved, and its status if it exists."""
    target = Path(os.path.realpath(path))
    try:
        old = path.stat()
    except FileNotFoundError:
        return target, None
    # /dev/stdout and its like lead to an open file, which need not have a name.
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
    """Return the contents of a JSON file, not checked further.

    Beyond plain syntax errors this refuses text that is not valid Unicode, duplicate keys,
    numbers that are infinite or thousands of digits long, and nesting too deep for the stack.

    Args:
        most_mebibytes: Larger files are refused.
        malformed: Raised if the contents are not JSON.
        unreadable: Raised if the file cannot be read or is too large; by default `malformed`.
    """
    data = _read_capped(path, most_mebibytes, unreadable or malformed)
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=_without_duplicates,
            parse_float=_finite,
            parse_constant=_finite,
        )
        # JSON can escape a lone surrogate, which is not text.
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise malformed(f"not JSON: {_in_one_line(error)}", path=path) from error
    return value


def _read_capped(path: Path, most_mebibytes: int, unreadable: type[FileError]) -> bytes:
    most = most_mebibytes << 20
    try:
        # A blocking open of a pipe would wait for a writer.
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
            raise ValueError(f"the key {name!r} appears twice in one object")
        value[name] = item
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def _in_one_line(error: Exception) -> str:
    """Return the reason in a few words."""
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
