"""Work spread over processes of this machine, or over a Dask cluster."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from arenite.pipeline.base.observing import Observer, Search
from arenite.planner import AreniteError
from arenite.planner.errors import needing

_T = TypeVar("_T")
_R = TypeVar("_R")

_POLL_S = 0.1
"""Seconds between two looks at whether to stop: a signal does not end the wait for a process."""

_GRACE_S = 30.0
"""Seconds that processes have to return the best plans so far after the request to stop."""

_stop: Event | None = None
"""In a worker: set once the caller asks all workers to stop."""


class _WorkerSearch(Search):
    """A search in a worker, stopped by the caller of the worker."""

    def should_stop(self) -> bool:
        self.was_stopped = self.was_stopped or (_stop is not None and _stop.is_set())
        return self.was_stopped


class WorkerObserver(Observer):
    """Stops each search of a worker, which keeps its best result, when the caller asks."""

    @contextmanager
    def searching(self, _name: str, _keeps: str = "") -> Iterator[Search]:
        yield _WorkerSearch()


@dataclass(frozen=True, slots=True)
class Crash:
    """A process that ended without a result."""

    reason: str


def _never() -> bool:
    return False


def each_in_a_process(
    function: Callable[[_T], _R],
    items: Sequence[_T],
    num_processes: int,
    should_stop: Callable[[], bool] = _never,
) -> Iterator[tuple[int, _R | Crash]]:
    """Yield the index and the result of each item when it is done.

    Items, results and the function are pickled. Ctrl-C reaches the caller alone. Once the caller
    stops, no further item is begun, searches under a `WorkerObserver` end, and the processes have
    30 s to return their results; those still running after it, or when the iterator is closed,
    are ended.

    Args:
        function: Importable by its name.
        should_stop: Asked while processes run; when it says so, the iterator comes to its end.
    """
    context = get_context("spawn")  # a fork would inherit the threads of native libraries
    waiting = iter(enumerate(items))
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    stop = context.Event()
    last = float("inf")
    try:
        while time.monotonic() < last:
            if not stop.is_set() and should_stop():
                stop.set()
                last = time.monotonic() + _GRACE_S
            while (
                not stop.is_set()
                and len(running) < num_processes
                and (following := next(waiting, None))
            ):
                index, item = following
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_call, args=(function, item, sender, stop))
                with _interrupts_blocked():  # of the process as well, while it starts
                    process.start()
                sender.close()
                running[receiver] = (index, process)
            if not running:
                return
            for ready in wait(list(running), _POLL_S):
                assert isinstance(ready, Connection)
                index, process = running[ready]
                try:
                    result: _R | Crash = ready.recv()
                except EOFError:
                    process.join()
                    result = Crash(_ending(process.exitcode))
                process.join()
                ready.close()
                del running[ready]
                yield index, result
    finally:
        for connection, (_, process) in running.items():
            process.kill()
            process.join()
            connection.close()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _call(function: Callable[[_T], _R], item: _T, sender: Connection, stop: Event) -> None:
    global _stop  # the process runs nothing else
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sender.send(function(item))
    sender.close()


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"process killed by {signal.Signals(-exit_code).name}"
    return f"process exited with code {exit_code}"


_CONNECT_TIMEOUT_S = 10


class ClusterError(AreniteError):
    """The cluster cannot be reached."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: the scheduler cannot be reached: {reason}")
        self.address = address
        self.reason = reason


def each_on_cluster(
    address: str, function: Callable[[_T], _R], items: Iterable[tuple[int, _T]]
) -> Iterator[tuple[int, _R | Crash]]:
    """Yield the index and the result of each item when it is done.

    A worker that dies loses nothing: its items go to the others. One that brings worker
    after worker down becomes a `Crash`, and so does one whose function fails.

    Args:
        address: Of the scheduler, such as `tcp://10.0.0.1:8786`.
        function: Importable by its name on the workers.
        items: With their indexes; sent as they come.

    Raises:
        ClusterError: The scheduler cannot be reached.
        MissingDependencyError: The package is absent.
    """
    with needing("distributed", "dask", "--scheduler"):
        distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(address, str(error)) from error
    with client:
        # Not pure: equal items are still two models of the user's.
        indexes = {client.submit(function, item, pure=False): index for index, item in items}
        for future in distributed.as_completed(indexes, loop=client.loop):
            failure = future.exception()
            yield (
                indexes[future],
                future.result() if failure is None else Crash(_sentence(failure)),
            )


def _sentence(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
