"""ONNX Runtime, its memory served from one planned arena."""

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.verify import verify
from arenite.runtime.targets.onnxruntime.errors import (
    InputMismatchError,
    RunFailedError,
    StockSessionWarning,
    UnexpectedRuntimeError,
    UnknownOutputError,
)
from arenite.runtime.targets.onnxruntime.hosted import HostedSession
from arenite.runtime.targets.onnxruntime.library import library
from arenite.runtime.targets.onnxruntime.recording import ALIGNMENT, record
from arenite.runtime.targets.onnxruntime.stock import stock_options, stock_session
from arenite.runtime.targets.onnxruntime.values import ValueInfo


@dataclass(frozen=True, slots=True)
class RunMemory:
    """What one run asked for.

    Attributes:
        inside: Allocations served from the arena.
        outside: Those that the heap had to serve.
        outside_bytes: Sum of their sizes.
    """

    inside: int
    outside: int
    outside_bytes: int


class PlannedSession:
    """ONNX Runtime's session, every allocation of a run served from one arena.

    The first run is recorded and planned; later ones are served. A run that differs, say
    for other shapes, gets from the heap what does not fit its place in the plan, and that
    is counted. Runs of one session wait for each other.

    On a library that is not known or does not do as expected a `StockSessionWarning` says
    why, and the stock session runs the model.

    Attributes:
        problem: What the first run asked for; None before, and with the stock session.
        plan: Where it lies; None before the first run, and with the stock session.
        last_run: What the latest run asked for; None before the second.
        num_outside: Allocations of all runs since the first that the heap had to serve.

    Args:
        model: The model file, or its bytes.
        plan: For the same recorded problem; if None, the strategy makes it.
        strategy: From a problem to a plan, such as `arenite.strategies.find("best")`.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Of the kernels.

    Raises:
        ValueError: Not either a plan or a strategy is given.
        UnsupportedModelError: ONNX Runtime refuses the model.
        MissingDependencyError: The package onnxruntime is absent.
    """

    def __init__(
        self,
        model: Path | str | bytes,
        plan: Plan | None = None,
        strategy: Callable[[Problem], Plan] | None = None,
        *,
        optimise: bool = True,
        num_threads: int = 1,
    ) -> None:
        if (plan is None) is (strategy is None):
            raise ValueError("give either a plan or a strategy")
        model = Path(model) if isinstance(model, str) else model
        self.problem: Problem | None = None
        self.plan: Plan | None = None
        self.last_run: RunMemory | None = None
        self.num_outside = 0
        self._make_plan = strategy if strategy is not None else _given(plan)
        self._lock = threading.Lock()
        self._stock: Any = None
        try:
            self._hosted = HostedSession(
                library(), model, optimise=optimise, num_threads=num_threads
            )
        except UnexpectedRuntimeError as error:
            warnings.warn(
                f"the stock session runs the model: {error}", StockSessionWarning, stacklevel=2
            )
            self._stock = stock_session(
                model, stock_options(optimise=optimise, num_threads=num_threads)
            )

    @property
    def arena_bytes(self) -> int | None:
        """Bytes of the arena; None before the first run, and with the stock session."""
        return None if self.plan is None else self.plan.height

    def get_inputs(self) -> Sequence[ValueInfo]:
        """Return what the model takes, each with a name, a type and a shape."""
        if self._stock is not None:
            return list(self._stock.get_inputs())
        return list(self._hosted.inputs)

    def get_outputs(self) -> Sequence[ValueInfo]:
        """Return what the model gives, each with a name, a type and a shape."""
        if self._stock is not None:
            return list(self._stock.get_outputs())
        return list(self._hosted.outputs)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[Any]]
    ) -> list[NDArray[Any]]:
        """Run the model once and return the outputs named, or all of them.

        Raises:
            InputMismatchError: An input is missing, unknown, or of another type or shape.
            UnknownOutputError: The model has no output of that name.
            RunFailedError: ONNX Runtime gave up.
            InvalidPlanError: The plan given is not right for this model; first run only.
        """
        if self._stock is not None:
            return list(self._stock.run(output_names, input_feed))
        wanted = self._indexes(output_names)
        inputs = self._checked(input_feed)
        with self._lock:
            outputs = self._recorded_run(inputs) if self.plan is None else self._run(inputs)
        return [outputs[index] for index in wanted]

    def _recorded_run(self, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
        recording = record(self._hosted, inputs)
        self._bound = recording.bound
        self._serve(recording.problem)
        return recording.outputs

    def _serve(self, problem: Problem) -> None:
        plan = self._make_plan(problem)
        verify(problem, plan)
        memory = np.empty(plan.height + ALIGNMENT, np.uint8)
        skip = -memory.ctypes.data % ALIGNMENT
        self._arena = memory[skip : skip + plan.height]
        self._hosted.allocator.serve(
            self._arena.ctypes.data,
            plan.height,
            [record.size for record in problem.records],
            plan.offsets,
        )
        self.problem, self.plan = problem, plan

    def _run(self, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
        allocator = self._hosted.allocator
        allocator.start_run()
        try:
            return self._hosted.run(inputs, bound=self._bound)
        except RunFailedError:
            if not self._bound:
                raise
            # As in the recording: an output may have another shape than the model states.
            return self._hosted.run(inputs, bound=False)
        finally:
            self.last_run = RunMemory(*allocator.counts)
            self.num_outside += self.last_run.outside

    def _checked(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        known = {value.name for value in self._hosted.inputs}
        for name in feeds:
            if name not in known:
                raise InputMismatchError(name, f"unknown; known: {', '.join(sorted(known))}")
        for name in known - feeds.keys():
            raise InputMismatchError(name, "missing")
        return [value.checked(feeds[value.name]) for value in self._hosted.inputs]

    def _indexes(self, names: Sequence[str] | None) -> list[int]:
        known = [value.name for value in self._hosted.outputs]
        if names is None:
            return list(range(len(known)))
        for name in names:
            if name not in known:
                raise UnknownOutputError(name, known)
        return [known.index(name) for name in names]


def _given(plan: Plan | None) -> Callable[[Problem], Plan]:
    assert plan is not None
    return lambda _problem: plan
