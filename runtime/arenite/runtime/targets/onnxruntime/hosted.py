"""A session of ONNX Runtime's library whose CPU memory comes from our allocator."""

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime.targets.onnxruntime._allocator import PlanAllocator, Runner
from arenite.runtime.targets.onnxruntime.errors import RunFailedError, UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.library import ALL_OPTIMISATIONS, Library, StatusError
from arenite.runtime.targets.onnxruntime.stock import refusal
from arenite.runtime.targets.onnxruntime.values import ValueInfo, value_infos

_REGISTERING: Final = threading.Lock()


class _RefusalError(Exception):
    """ONNX Runtime refuses the model; the text is its own."""


class HostedSession:
    """A session with an allocator of its own.

    Attributes:
        allocator: What the session asks for memory.
        inputs: What the model takes.
        outputs: What it gives.

    Args:
        library: ONNX Runtime's.
        model: The model file, or its bytes.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.
        origin: The model that people know, if `model` is made of it.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model.
        UnexpectedRuntimeError: The session does not ask our allocator, or the model takes
            or gives what is not a tensor of numbers.
    """

    def __init__(
        self,
        library: Library,
        model: Path | bytes,
        *,
        optimise: bool,
        num_threads: int,
        origin: Path | bytes | None = None,
    ) -> None:
        self.allocator = PlanAllocator()
        self.allocator.set_memory_info(library.cpu)
        self._library = library
        try:
            self._session = _created(library, self.allocator, model, optimise, num_threads)
        except _RefusalError as error:
            raise refusal(model, error, origin) from error
        # The allocator must live until the session has given everything back.
        weakref.finalize(self, _release, library, self._session, self.allocator)
        self._check_allocator()
        self.inputs = value_infos(library, self._session, "Input")
        self.outputs = value_infos(library, self._session, "Output")
        self._runner = Runner(
            library.table, self._session, library.cpu, _types(self.inputs), _types(self.outputs)
        )

    def run(
        self,
        inputs: Sequence[NDArray[Any]],
        *,
        bound: bool,
        arena: NDArray[np.uint8] | None = None,
    ) -> list[NDArray[Any]]:
        """Run the model once and return all outputs.

        Args:
            inputs: Checked, in the order of `inputs`.
            bound: Let the model write outputs of stated shape into the arrays returned;
                the others, or all of them, are copied from where the session made them.
            arena: What the session made in it is given as it lies there, not copied.

        Raises:
            RunFailedError: ONNX Runtime gave up.
        """
        results = [
            np.empty(value.static_shape, value.dtype)
            if bound and value.static_shape is not None
            else None
            for value in self.outputs
        ]
        try:
            return self._runner.run(inputs, results, arena)
        except RuntimeError as error:
            raise RunFailedError(f"ONNX Runtime gave up: {error}") from error

    def _check_allocator(self) -> None:
        """Return if the session's memory comes from our allocator.

        Raises:
            UnexpectedRuntimeError: It does not.
        """
        library, before = self._library, self.allocator.num_calls
        try:
            own = library.made("CreateAllocator", self._session, library.cpu)
        except StatusError as error:
            raise UnexpectedRuntimeError(f"the session shows no allocator: {error}") from error
        try:
            library.call("AllocatorFree", own, library.made("AllocatorAlloc", own, 1))
        finally:
            library.release("ReleaseAllocator", own)
        if self.allocator.num_calls == before:
            raise UnexpectedRuntimeError("the session does not ask the allocator it was given")


def _created(
    library: Library, allocator: PlanAllocator, model: Path | bytes, optimise: bool, threads: int
) -> int:
    """Return the address of a new session; it keeps the allocator that it finds registered."""
    options = library.made("CreateSessionOptions")
    try:
        library.call("SetSessionLogSeverityLevel", options, FATAL)
        library.call(
            "SetSessionGraphOptimizationLevel", options, ALL_OPTIMISATIONS if optimise else 0
        )
        library.call("SetIntraOpNumThreads", options, threads)
        library.call("DisableMemPattern", options)  # every tensor is to be asked for
        library.call("DisableCpuMemArena", options)
        library.call("AddSessionConfigEntry", options, b"session.use_env_allocators", b"1")
        with _REGISTERING:  # one allocator for CPU memory at a time
            library.call("RegisterAllocator", library.env, allocator.address)
            try:
                return library.created(model, options)
            except StatusError as error:
                raise _RefusalError(str(error)) from error
            finally:
                library.call("UnregisterAllocator", library.env, library.cpu)
    except StatusError as error:
        raise UnexpectedRuntimeError(f"the session cannot be set up: {error}") from error
    finally:
        library.release("ReleaseSessionOptions", options)


def _release(library: Library, session: int, _allocator: PlanAllocator) -> None:
    library.release("ReleaseSession", session)


def _types(values: Sequence[ValueInfo]) -> list[tuple[str, int]]:
    return [(value.name, value.element_type) for value in values]
