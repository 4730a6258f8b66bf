"""Files as inputs of a model, arrays and pictures, and its outputs as a file."""

import io
import lzma
import stat
import sys
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from arenite.cli.commands.run.images import SUFFIXES, Normalisation, read_image
from arenite.cli.options.types import Parsed
from arenite.pipeline.base import printable
from arenite.pipeline.making import random_array
from arenite.planner.errors import FileError
from arenite.runtime import InputNameError, SessionPort

Array: TypeAlias = NDArray[Any]

_DAMAGE = (
    ValueError, EOFError, KeyError, MemoryError, OverflowError, RuntimeError, TypeError,
    lzma.LZMAError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What numpy and the packages below it raise on files that are not as they should be."""

_MOST_HEADER: Final = 1 << 20
"""Bytes before the elements of an array in a file; numpy writes 128, and reads 10,000."""


class InputFileError(FileError):
    """A file cannot be an input."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A file that is fed.

    Attributes:
        name: The input; None where the user names none.
    """

    path: Path
    name: str | None = None

    @property
    def holds_all(self) -> bool:
        """Whether the file names the inputs itself."""
        return self.name is None and self.path.suffix.lower() == ".npz"


def _feed(text: str) -> Feed:
    """Return a file with or without its input, such as `image=cat.png`; an existing file wins."""
    name, equals, file = text.rpartition("=")
    if not equals or Path(text).exists():
        return Feed(Path(text))
    if not (name and file):
        raise ValueError(f"{text!r} is not FILE or NAME=FILE")
    return Feed(Path(file), name)


FEED = Parsed("feed", _feed)


def read_feeds(
    feeds: Sequence[Feed], ports: Sequence[SessionPort], normalisation: Normalisation
) -> dict[str, Array]:
    """Return the array of each input that is fed.

    Raises:
        ImageError: A picture cannot be read, or the input takes none.
        InputNameError: There is no such input.
        UsageError: An input is missing, fed twice, or it is not clear which a file is for.
    """
    by_name = {port.name: port for port in ports}
    arrays: dict[str, Array] = {}
    for feed in feeds:
        for name, array in _arrays(feed, by_name, normalisation).items():
            if name in arrays:
                raise click.UsageError(f"--input {feed.path}: input {name!r} is given twice")
            arrays[name] = array
    missing = [port for port in ports if port.name not in arrays]
    if missing:
        wanted = ", ".join(
            f"{printable(port.name)}={port.dtype} {'x'.join(map(str, port.shape)) or 'scalar'}"
            for port in missing
        )
        raise click.UsageError(f"missing option --input for: {wanted}")
    return arrays


def random_feeds(ports: Sequence[SessionPort], seed: int) -> dict[str, Array]:
    """Return random numbers for each input, small ones for integers, which may be indices."""
    generator = np.random.default_rng(seed)
    return {port.name: random_array(generator, port.dtype, port.shape) for port in ports}


def _arrays(
    feed: Feed, ports: dict[str, SessionPort], normalisation: Normalisation
) -> dict[str, Array]:
    most = max((port.view.nbytes for port in ports.values()), default=0)
    if feed.holds_all:
        return _load(feed.path, most)
    if feed.name is None and len(ports) != 1:
        raise click.UsageError(
            f"--input {feed.path}: the model has {len(ports)} inputs; name one, as in NAME=FILE: "
            f"{', '.join(map(printable, ports))}"
        )
    name = next(iter(ports)) if feed.name is None else feed.name
    if name not in ports:
        raise InputNameError(name, ports, missing=False)
    if feed.path.suffix.lower() in SUFFIXES:
        port = ports[name]
        return {name: read_image(feed.path, port.shape, port.dtype, normalisation)}
    stored = _load(feed.path, most)
    if name not in stored and len(stored) != 1:
        held = ", ".join(map(repr, stored)) or "nothing"
        raise InputFileError(f"has no array {name!r}; it holds {held}", path=feed.path)
    return {name: stored[name] if name in stored else next(iter(stored.values()))}


def arrays_of(feed: Feed) -> dict[str, Array]:
    """Return the arrays of a file by name; that of a `.npy` has none."""
    return _load(feed.path, sys.maxsize)


def _load(path: Path, most: int) -> dict[str, Array]:
    """Return the arrays of a file by name; that of a `.npy` has none.

    Args:
        most: Bytes of the largest array that is of use; larger ones are not read.
    """
    try:
        _check_kind(path)
        with path.open("rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            if stream.read(6) != b"\x93NUMPY" and not zipfile.is_zipfile(stream):
                pictures = ", ".join(sorted(SUFFIXES))
                raise InputFileError(
                    f"not the contents of .npy or .npz; pictures end in {pictures}", path=path
                )
            stream.seek(0)
            _check_sizes(stream, path, most)
            stream.seek(0)
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            with loaded:
                arrays = {key: loaded[key] for key in loaded.files}
    except OSError as error:
        raise InputFileError(f"cannot be read: {error.strerror or error}", path=path) from error
    except _DAMAGE as error:
        raise InputFileError(f"is damaged: {error}", path=path) from error
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputFileError(f"{key!r} is not an array", path=path)
    return arrays


def _check_kind(path: Path) -> None:
    """Return if a file has an end, or cannot be opened at all: a device may go on for ever."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputFileError("is not a regular file", path=path)


def _check_sizes(stream: BinaryIO, path: Path, most: int) -> None:
    """Return if no array of a file is larger than any input, as its directory or size says."""
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            sizes = [entry.file_size for entry in archive.infolist()]
    else:
        sizes = [path.stat().st_size]
    largest = max(sizes, default=0)
    if largest > most + _MOST_HEADER:
        raise InputFileError(
            f"holds an array of {largest:,} B; the largest input of the model takes {most:,} B",
            path=path,
        )


def as_npz(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as an `.npz` file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # np.savez stumbles over the name "file"
        for key, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
    return stream.getvalue()
