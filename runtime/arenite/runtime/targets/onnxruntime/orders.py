"""The sessions of a model, one for each order that its nodes may run in."""

import logging
from pathlib import Path

from arenite.planner.errors import UnsupportedModelError
from arenite.runtime.targets.onnxruntime.hosted import HostedSession
from arenite.runtime.targets.onnxruntime.library import Library
from arenite.runtime.targets.onnxruntime.settled import SettledModel

_log = logging.getLogger(__name__)


class HostedOrders:
    """The orders of a model, each of which runs alike in every process.

    Where ONNX Runtime cannot write what its optimiser made of the model there is one order,
    its own; a plan for that may not hold in another process.

    Args:
        library: ONNX Runtime's.
        model: The model file, or its bytes.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model.
        UnexpectedRuntimeError: The library cannot serve a planned session.
        MissingDependencyError: The package onnx is absent.
    """

    def __init__(
        self, library: Library, model: Path | bytes, *, optimise: bool, num_threads: int
    ) -> None:
        self._library = library
        self._model = model
        self._optimise = optimise
        self._num_threads = num_threads
        self._settled = SettledModel(library, model) if optimise else None
        self._first: HostedSession | None = self._opened_first()

    def __len__(self) -> int:
        """Return the number of orders."""
        return max(1, len(self._settled.files)) if self._settled else 1

    def session(self, index: int) -> HostedSession:
        """Return a session that runs the nodes in an order; two at once are never kept here."""
        first, self._first = self._first, None
        if index == 0 and first is not None:
            return first
        return self._opened(index)

    def close(self) -> None:
        """Give back the disk space; no further sessions can be made, those made live on."""
        if self._settled is not None:
            self._settled.close()

    def _opened_first(self) -> HostedSession:
        try:
            return self._opened(0)
        except UnsupportedModelError as error:
            if self._settled is None:
                raise
            self._settled = None
            session = self._opened(0)
            _log.warning("a plan may not hold in another process: %s", error)
            return session

    def _opened(self, index: int) -> HostedSession:
        files = self._settled.files if self._settled is not None else ()
        return HostedSession(
            self._library,
            files[index] if files else self._model,
            optimise=self._optimise and not files,
            num_threads=self._num_threads,
            origin=self._model,
        )
