"""Items sent to the workers of an existing Dask cluster."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from arenite.pipeline.comparison.processes import Crash
from arenite.planner.errors import AreniteError, MissingDependencyError

_T = TypeVar("_T")
_R = TypeVar("_R")

_CONNECT_TIMEOUT_S = 10


class ClusterError(AreniteError):
    """The cluster cannot be reached.

    Attributes:
        address: Of its scheduler.
        reason: Why not.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: the scheduler cannot be reached: {reason}")
        self.address = address
        self.reason = reason


def each_on_cluster(
    address: str, function: Callable[[_T], _R], items: Iterable[tuple[int, _T]]
) -> Iterator[tuple[int, _R | Crash]]:
    """Yield the index of each item and what the function gives for it, as they are done.

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
    distributed = _distributed()
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


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ModuleNotFoundError as error:
        raise MissingDependencyError("distributed", "dask", "--scheduler") from error
