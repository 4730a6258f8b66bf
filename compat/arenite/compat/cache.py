"""Programs that were built of models, kept in a folder.

The folder is `$ARENITE_CACHE`, else `arenite` in `$XDG_CACHE_HOME`, else `~/.cache/arenite`.
`ARENITE_CACHE=off` keeps nothing. What was not used for longest goes first once the folder holds
more than `LIMIT` bytes. Several processes may use it: each file is written whole or not at all,
and by one of them. A folder that cannot be written to is read; what it lacks is made each time.
"""

import fcntl
import functools
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import arenite
from arenite.pipeline import Session
from arenite.planner import AreniteError
from arenite.planner.errors import MissingDependencyError, OutputError
from arenite.runtime import ProgramError, processor_name

Made = TypeVar("Made")
Options = Mapping[str, object]

LIMIT = 2 << 30
"""Most bytes that the folder holds; a larger single program is kept alone."""
building_s = 0.0
"""Seconds that this process has waited for models to be built."""
_REFUSED = ".refused"
_FINAL, _FOR_NOW = "refused", "refused without onnxruntime"
_NO_ROOM = "no room"
_DAY_S = 86_400


class RefusedError(AreniteError):
    """A model cannot be built; this is the reason.

    Attributes:
        is_final: Whether ONNX Runtime, which runs some operators, was there and did not help.
    """

    def __init__(self, reason: str, *, is_final: bool = True) -> None:
        super().__init__(reason)
        self.is_final = is_final


class UnavailableError(AreniteError):
    """A model cannot be built now: a package or space on the disk is missing."""


class _NoRoomError(UnavailableError):
    """A file cannot be written there; elsewhere it may."""


class _MissingError(Exception):
    """The folder has no such file, or there is no folder."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model file, on disk or in memory.

    Attributes:
        suffix: Says the format: `.onnx`, `.tflite`; `.arena` for a program that was built before.
        path: The file; None if its bytes are given.
        content: The bytes; None if they are in the file.
        digest: SHA-256 of the bytes.
    """

    ARENA: ClassVar[str] = ".arena"

    suffix: str
    path: Path | None
    content: bytes | None = field(repr=False)
    digest: str

    @classmethod
    def of(cls, given: Path | str | bytes, suffix: str) -> Self:
        """Return the model of a path or of bytes.

        Args:
            given: The file, or its bytes.
            suffix: The format, unless the name ends with `.arena`.

        Raises:
            OSError: The file cannot be read.
        """
        if isinstance(given, bytes):
            return cls(suffix, None, given, hashlib.sha256(given).hexdigest())
        path = Path(given)
        is_built = path.suffix == cls.ARENA
        return cls(cls.ARENA if is_built else suffix, path, None, _digest(path))

    @property
    def name(self) -> str:
        """The name of the file, for messages."""
        return "the model" if self.path is None else self.path.name

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Yield a file of the model whose name ends with the suffix."""
        if self.path is not None and self.path.suffix == self.suffix:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
            path = Path(folder, f"model{self.suffix}")
            if self.path is None:
                path.write_bytes(self.content or b"")
            else:
                path.symlink_to(self.path.resolve())
            yield path


def open_program(
    model: Model, options: Options, *, threads: int = 1, parts: Sequence[Path] = ()
) -> Session:
    """Return a session of a model, which is built unless it was before.

    Args:
        model: The model; an `.arena` file is taken as it is.
        options: Arguments of `arenite.build`, such as `dims` and `shapes`, that JSON can state.
        threads: Number of threads that run kernels, at most that of the processors.
        parts: Other files that the model consists of, such as external data.

    Raises:
        RefusedError: The model cannot be read, planned or run at these sizes.
        UnavailableError: A package that it needs is missing, or there is no space.
        ProgramError: An `.arena` file is damaged.
    """
    threads = min(threads, len(os.sched_getaffinity(0)))  # more would wait for each other
    if model.suffix == Model.ARENA and model.path is not None:
        return Session(model.path, threads=threads)
    return made(
        model, "arenite.pipeline:build", options, Model.ARENA,
        lambda path: Session(path, threads=threads), parts,
    )  # fmt: skip


def made(
    model: Model,
    task: str,
    options: Options,
    suffix: str,
    use: Callable[[Path], Made],
    parts: Sequence[Path] = (),
) -> Made:
    """Return what `use` makes of a file that is made of a model, unless it is kept.

    It is made by another process, whose memory is free afterwards. A file that `use` refuses with
    `ProgramError` or `ValueError` is made again.

    Args:
        model: The model.
        task: The function that makes it, `module:name`, called with the paths of the model and
            of the file.
        options: Its other arguments, that JSON can state.
        suffix: Ends the name of the file.
        use: Reads the file; it may be deleted afterwards.
        parts: Other files that the model consists of.

    Raises:
        RefusedError: The task raises an error for the model.
        UnavailableError: The task lacks a package, or space on the disk.
    """
    stated = [
        arenite.__version__, processor_name(), model.digest, [_digest(part) for part in parts],
        task, options,
    ]  # fmt: skip
    key = hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    def kept(folder: Path) -> Made:
        path, refused = folder / f"{key}{suffix}", folder / f"{key}{_REFUSED}"
        try:
            if refused.exists():
                raise RefusedError(refused.read_text())
            found = use(path) if path.exists() else None
        except (ProgramError, OSError, ValueError) as error:  # damaged, or gone meanwhile
            raise _MissingError from error
        if found is None:
            raise _MissingError
        with suppress(OSError):
            os.utime(path)
        return found

    def new(folder: Path) -> Path:
        path, temporary = folder / f"{key}{suffix}", folder / f"{key}.{os.getpid()}.new{suffix}"
        try:
            with model.file() as file:
                _run(task, file, temporary, options)
            temporary.replace(path)
        except RefusedError as error:
            if error.is_final:
                _write(folder / f"{key}{_REFUSED}", str(error))
            raise
        except OSError as error:
            raise _NoRoomError(str(error)) from error
        finally:
            temporary.unlink(missing_ok=True)
        return path

    with suppress(_MissingError, _NoRoomError):
        folder = _folder()
        with suppress(_MissingError):  # without a lock, as files are written whole
            return kept(folder)
        with _locked(folder, key):
            with suppress(_MissingError):  # another process may have made it meanwhile
                return kept(folder)
            path = new(folder)
            _make_room(folder, path)
            return use(path)
    with tempfile.TemporaryDirectory(prefix="arenite-") as own:
        return use(new(Path(own)))


def note(model: Model, name: str, value: object) -> None:
    """Keep a value that JSON can state beside the programs of a model; nothing if this fails."""
    with suppress(_MissingError):
        _write(_folder() / f"{model.digest}.{name}.json", json.dumps(value))


def noted(model: Model, name: str) -> object:
    """Return what `note` kept, None if there is nothing."""
    with suppress(_MissingError, OSError, ValueError):
        found: object = json.loads((_folder() / f"{model.digest}.{name}.json").read_text())
        return found
    return None


def _folder() -> Path:
    """Return the folder of the cache, which may not be there.

    Raises:
        _MissingError: Nothing is kept, or this user has no folder.
    """
    stated = os.environ.get("ARENITE_CACHE")
    if stated and stated.lower() in {"off", "0", "no", "false"}:
        raise _MissingError
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(stated or Path(base, "arenite")).expanduser()
    except RuntimeError as error:  # without a home
        raise _MissingError from error


@contextmanager
def _locked(folder: Path, key: str) -> Iterator[None]:
    """Keep other threads and processes from the files of a key.

    Raises:
        _NoRoomError: The folder cannot be written to.
    """
    path = folder / "locks" / key[:2]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _NoRoomError(str(error)) from error
    try:
        with suppress(OSError):  # a file system without locks: each process makes its own
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_room(folder: Path, newest: Path) -> None:
    """Delete what was not used for longest, until the rest is within the limit."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        with suppress(OSError):  # deleted by another process
            status = path.stat()
            if ".new" in path.name and time.time() - status.st_mtime > _DAY_S:
                path.unlink()
            elif path.is_file() and path != newest:
                found.append((status.st_mtime, status.st_size, path))
    held = newest.stat().st_size + sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if held <= LIMIT:
            return
        with suppress(OSError):  # another user's
            path.unlink(missing_ok=True)
            held -= size


def _write(path: Path, text: str) -> None:
    """Write a file whole; nothing if this fails."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text)
        temporary.replace(path)


def _digest(path: Path) -> str:
    status = path.stat()
    return _digest_of(path, status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _digest_of(path: Path, *_: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _run(task: str, model: Path, output: Path, options: Options) -> None:
    """Run a task in a process of its own, which finds the modules that this one does."""
    global building_s  # a counter
    started = time.perf_counter()
    stated = json.dumps([task, str(model.resolve()), str(output), options])
    process = subprocess.run(
        [sys.executable, "-P", "-c", f"from {__name__} import work; work()"],
        input=stated, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )  # fmt: skip
    building_s += time.perf_counter() - started
    kind, _, reason = process.stdout.rpartition("\0")[2].partition("\1")
    if process.returncode == 0 and kind == "done":
        return
    if kind in {_FINAL, _FOR_NOW}:
        raise RefusedError(reason, is_final=kind == _FINAL)
    if kind == _NO_ROOM:
        raise _NoRoomError(reason)
    raise UnavailableError(reason or process.stderr.strip().rpartition("\n")[2] or "build failed")


def work() -> None:
    """Do the task that standard input states, and report on standard output."""
    task, model, output, options = json.load(sys.stdin)
    module, _, name = task.partition(":")
    kind, reason = "done", ""
    try:
        getattr(importlib.import_module(module), name)(Path(model), Path(output), **options)
    except MissingDependencyError as error:
        kind, reason = "unavailable", str(error)
    except (OutputError, OSError) as error:
        kind, reason = _NO_ROOM, str(error)
    except (AreniteError, ValueError) as error:
        kind, reason = _FINAL if find_spec("onnxruntime") else _FOR_NOW, str(error)
    sys.stdout.write(f"\0{kind}\1{reason}")
