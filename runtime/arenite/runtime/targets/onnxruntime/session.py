"""ONNX Runtime, its memory served from one planned arena."""

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Plan, Problem, verify
from arenite.planner.errors import InvalidPlanError
from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.library import ValueInfo, library
from arenite.runtime.targets.onnxruntime.recording import ALIGNMENT, Recording, record
from arenite.runtime.targets.onnxruntime.settled import HostedOrders
from arenite.runtime.targets.onnxruntime.stock import (
    InputMismatchError,
    RunFailedError,
    StockSessionWarning,
    UnknownOutputError,
    stock_options,
    stock_session,
)


@dataclass(frozen=True, slots=True)
class RunMemory:
    """Allocations of one run.

    Attributes:
        inside: Allocations served from the arena.
        outside: Allocations that the heap had to serve.
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
        problem: Allocations of the first run; None before, and with the stock session.
        plan: Plan of these; None before the first run, and with the stock session.
        last_run: Allocations of the latest run; None before the second.
        num_outside: Allocations of all runs since the first that the heap had to serve.

    Args:
        model: The model file, or its bytes.
        plan: For the same recorded problem; if None, the strategy makes it.
        strategy: Makes a plan of a problem, such as `arenite.strategies.find("best")`.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.
        outputs_in_arena: Plan the outputs too, and return them as they lie in the arena:
            valid until the next run, so copy what is to last. Else they are the caller's,
            beside the arena for the whole run.

    Raises:
        ValueError: Both a plan and a strategy are given, or neither.
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
        outputs_in_arena: bool = False,
    ) -> None:
        if (plan is None) is (strategy is None):
            raise ValueError("give either a plan or a strategy")
        model = Path(model) if isinstance(model, str) else model
        self.problem: Problem | None = None
        self.plan: Plan | None = None
        self.last_run: RunMemory | None = None
        self.num_outside = 0
        self._given = plan
        self._outputs_inside = outputs_in_arena
        self._strategy = strategy
        self._lock = threading.Lock()
        self._stock: Any = None
        try:
            self._orders = HostedOrders(
                library(), model, optimise=optimise, num_threads=num_threads
            )
            self._order, self._hosted = 0, self._orders.session(0)
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
        """Return the inputs of the model, each with a name, a type and a shape."""
        if self._stock is not None:
            return list(self._stock.get_inputs())
        return list(self._hosted.inputs)

    def get_outputs(self) -> Sequence[ValueInfo]:
        """Return the outputs of the model, each with a name, a type and a shape."""
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
            RunFailedError: ONNX Runtime fails.
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
        recording, plan = self._recorded_and_planned(inputs)
        self._bound = recording.bound
        self._serve(recording.problem, plan)
        self._orders.close()
        return recording.outputs

    def _recorded_and_planned(self, inputs: list[NDArray[Any]]) -> tuple[Recording, Plan]:
        """Record the orders, keep the session of the best, and return its recording and plan."""
        recordings: list[Recording] = []
        for index in range(len(self._orders)):
            self._open(index)
            recordings.append(record(self._hosted, inputs, outputs_inside=self._outputs_inside))
            if self._given is not None and _fits(recordings[-1].problem, self._given):
                return recordings[-1], self._given
        bounds = [recording.problem.lower_bound for recording in recordings]
        best = bounds.index(min(bounds))
        self._open(best)
        recording = recordings[best]
        if self._strategy is None:
            assert self._given is not None
            return recording, self._given  # verification refuses it with the reason
        return recording, self._strategy(recording.problem)

    def _open(self, index: int) -> None:
        """Have the session of this order, and never two at once."""
        if index != self._order:
            del self._hosted
            self._order, self._hosted = index, self._orders.session(index)

    def _serve(self, problem: Problem, plan: Plan) -> None:
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
            if self._outputs_inside:
                return self._hosted.run(self._unshared(inputs), bound=False, arena=self._arena)
            return self._hosted.run(inputs, bound=self._bound)
        except RunFailedError:
            if not self._bound:
                raise
            # As in the recording: an output may have another shape than the model states.
            return self._hosted.run(inputs, bound=False)
        finally:
            self.last_run = RunMemory(*allocator.counts)
            self.num_outside += self.last_run.outside

    def _unshared(self, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the inputs outside the arena: a state that is fed back lies where it was made."""
        return [each.copy() if np.may_share_memory(each, self._arena) else each for each in inputs]

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


def _fits(problem: Problem, plan: Plan) -> bool:
    """Tell whether the plan is one for these records."""
    try:
        verify(problem, plan)
    except InvalidPlanError:
        return False
    return True
