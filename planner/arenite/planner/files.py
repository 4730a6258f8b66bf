"""Files written whole or not at all, and their digests."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from arenite.planner.errors import ModelFormatError


def write_atomically(path: Path, data: bytes | Iterable[bytes | memoryview]) -> None:
    """Write `data`, whole or piece by piece, to a temporary name beside `path`, then rename.

    Raises:
        OSError: The folder cannot be written; `path` is as it was.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines((data,) if isinstance(data, bytes) else data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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
