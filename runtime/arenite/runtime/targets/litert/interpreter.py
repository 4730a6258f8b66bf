"""The stock interpreter of TFLite or LiteRT, run by our plan.

While it is built the interpreter calls every delegate. Ours takes no
operator; it declares each tensor of the arena to be custom memory and gives its address
in our buffer. Scratch of kernels is created later, when memory is allocated, and is placed
after that. The interpreter's planner leaves custom memory alone.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Plan, Problem, verify
from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.litert.probe import (
    ALIGNMENT,
    ArenaTensor,
    Probe,
    probe_arena,
    run_on_zeros,
)
from arenite.runtime.targets.litert.stock import (
    AllocationType,
    FixedShapeError,
    PrepareHook,
    StockPlacementWarning,
    TfLiteContext,
    load_interpreter,
    refusal,
    tensors,
)


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """The part of an arena of several models that one of them takes.

    Attributes:
        arena: All bytes, from `arena_of`.
        plan: The offsets of the records of all models.
        places: The offset of each tensor of the model, by name.
    """

    arena: NDArray[np.uint8]
    plan: Plan
    places: Mapping[str, int]


def arena_of(num_bytes: int) -> NDArray[np.uint8]:
    """Return zeros that are aligned as kernels expect."""
    memory = np.zeros(num_bytes + ALIGNMENT, np.uint8)
    skip = -memory.ctypes.data % ALIGNMENT
    return memory[skip : skip + num_bytes]


class PlannedInterpreter:
    """A stock interpreter whose arena is ours, kernel scratch included.

    It has the methods of the stock class that a loop of `set_tensor`, `invoke` and
    `get_tensor` needs; memory is allocated from the start. Inputs are overwritten during
    a run unless `keep_inputs` is set, so set them before every `invoke`.

    On a runtime that is not known or does not do as expected, and where the strategy needs
    more than stock, a `StockPlacementWarning` says why and the interpreter places its
    tensors itself.

    Attributes:
        problem: The records that were placed; None with the stock placement.
        plan: Plan of the records; None with the stock placement.
        stock_bytes: Extent of the arena that the interpreter would lay out itself; None
            where it could not be asked.

    Args:
        model: The model file, or its bytes.
        plan: A plan of `litert_problem(model, keep_inputs=...)`; if None, the strategy makes it.
        strategy: Makes a plan of a problem, such as `arenite.strategies.find("best")`.
        keep_inputs: Preserve the graph inputs during runs, as the stock class does.
        num_threads: Number of threads of the kernels.

    Raises:
        ValueError: Both a plan and a strategy are given, or neither.
        InvalidPlanError: The plan is not right for this model.
        UnsupportedModelError: The runtime refuses the model.
        MissingDependencyError: There is no runtime.
    """

    def __init__(
        self,
        model: Path | str | bytes,
        plan: Plan | None = None,
        strategy: Callable[[Problem], Plan] | None = None,
        *,
        keep_inputs: bool = False,
        num_threads: int = 1,
    ) -> None:
        if (plan is None) is (strategy is None):
            raise ValueError("give either a plan or a strategy")
        self._model = Path(model) if isinstance(model, str) else model
        self._num_threads = num_threads
        self.problem: Problem | None = None
        self.plan: Plan | None = None
        self.stock_bytes: int | None = None
        self._checked = False
        self._is_shared = False
        try:
            self._build(plan, strategy, keep_inputs=keep_inputs)
        except UnexpectedRuntimeError as error:
            self._fall_back(str(error))

    @classmethod
    def sharing(cls, model: Path, probed: Probe, problem: Problem, shared: SharedBytes) -> Self:
        """Return an interpreter that shares an arena with others, at offsets of one plan.

        Only one of them may run at a time unless the plan keeps them apart.

        Args:
            model: The model file.
            probed: Its arena, as `probe_arena` returns it.
            problem: The records of all models; `plan` has their offsets.
            shared: Where the tensors of this one lie.

        Raises:
            UnexpectedRuntimeError: The runtime rejects the plan, here or after the first run.
        """
        self = cls.__new__(cls)
        self._model, self._num_threads = model, 1
        self._checked, self._is_shared = False, True
        self.stock_bytes, self.problem, self.plan = probed.stock_bytes, problem, shared.plan
        addresses = [
            (probed.tensors[name], shared.arena.ctypes.data + offset)
            for name, offset in shared.places.items()
        ]
        self._placement = _Placement(addresses, shared.arena)
        self._stock = self._placement.build(model, 1)
        return self

    @property
    def arena_bytes(self) -> int | None:
        """Bytes of our arena; None with the stock placement."""
        return None if self.plan is None else self.plan.height

    @property
    def arena(self) -> NDArray[np.uint8]:
        """Our arena.

        Raises:
            UnexpectedRuntimeError: The placement is the stock one.
        """
        if self.plan is None:
            raise UnexpectedRuntimeError("the interpreter does not accept a plan")
        return self._placement.arena

    def tensor_addresses(self) -> list[tuple[int, int]]:
        """Return address and bytes of each arena tensor as the interpreter has them now.

        Raises:
            UnexpectedRuntimeError: The placement is the stock one.
        """
        if self.plan is None:
            raise UnexpectedRuntimeError("the interpreter does not accept a plan")
        return self._placement.found()

    def allocate_tensors(self) -> None:
        """Do nothing: memory is allocated from the start."""

    def invoke(self) -> None:
        """Run the model once.

        After the first run every tensor is looked for again; if one has moved, the run is
        repeated with the stock placement.
        """
        if self.plan is None or self._checked:
            self._stock.invoke()
            return
        inputs = {
            each["index"]: self._stock.get_tensor(each["index"])
            for each in self._stock.get_input_details()
        }
        self._stock.invoke()
        self._checked = True
        try:
            self._placement.check()
        except UnexpectedRuntimeError as error:
            if self._is_shared:
                raise
            self._fall_back(str(error))
            for index, value in inputs.items():
                self._stock.set_tensor(index, value)
            self._stock.invoke()

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy `value` into a tensor."""
        self._stock.set_tensor(tensor_index, value)

    def get_tensor(self, tensor_index: int) -> NDArray[Any]:
        """Return a copy of a tensor; only outputs, and inputs before a run, are meaningful."""
        result: NDArray[Any] = self._stock.get_tensor(tensor_index)
        return result

    def tensor(self, tensor_index: int) -> Callable[[], NDArray[Any]]:
        """Return a function that gives a view of a tensor."""
        result: Callable[[], NDArray[Any]] = self._stock.tensor(tensor_index)
        return result

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return the details of the graph inputs, as the stock class does."""
        return list(self._stock.get_input_details())

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return the details of the graph outputs, as the stock class does."""
        return list(self._stock.get_output_details())

    def get_tensor_details(self) -> list[dict[str, Any]]:
        """Return the details of all tensors, as the stock class does."""
        return list(self._stock.get_tensor_details())

    def reset_all_variables(self) -> None:
        """Reset the variables to their initial values."""
        self._stock.reset_all_variables()

    def resize_tensor_input(self, *_: object, **__: object) -> None:
        """Refuse: the plan holds for the shapes in the file.

        Raises:
            FixedShapeError: Always.
        """
        raise FixedShapeError(
            "the plan holds for the shapes in the file; write the model with the shape "
            "wanted, or use the stock interpreter"
        )

    def _build(
        self, plan: Plan | None, strategy: Callable[[Problem], Plan] | None, *, keep_inputs: bool
    ) -> None:
        probed = probe_arena(self._model)
        self.stock_bytes = probed.stock_bytes
        problem = probed.problem(keep_inputs=keep_inputs)
        if strategy is not None:
            plan = strategy(problem)
            if plan.height > probed.stock_bytes:
                raise UnexpectedRuntimeError(
                    f"the stock arena of {probed.stock_bytes} B is smaller than {plan.height} B"
                )
        assert plan is not None
        verify(problem, plan)
        arena = arena_of(plan.height)
        addresses = _addresses(probed.tensors, problem, plan, arena.ctypes.data)
        self._placement = _Placement(addresses, arena)
        self._stock = self._placement.build(self._model, self._num_threads)
        self.problem, self.plan = problem, plan

    def _fall_back(self, reason: str) -> None:
        warnings.warn(f"the stock placement stays: {reason}", StockPlacementWarning, stacklevel=3)
        self.plan = self.problem = None
        self._stock = load_interpreter(self._model, self._num_threads)
        try:
            self._stock.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise refusal(self._model, error) from error


class _Placement:
    """Puts the tensors of one interpreter where the plan says.

    Attributes:
        arena: The bytes of the plan.
    """

    def __init__(self, addresses: list[tuple[ArenaTensor, int]], arena: NDArray[np.uint8]) -> None:
        self.arena = arena
        self._addresses = addresses
        self._hook = PrepareHook(lambda _: self._place(temporary=False), keeps=arena)

    def build(self, model: Path | bytes, num_threads: int) -> Any:
        """Return the interpreter, ready to run.

        Raises:
            UnexpectedRuntimeError: A tensor is not as it was when probed.
        """
        interpreter = load_interpreter(model, num_threads, self._hook)
        try:
            interpreter.allocate_tensors()
            self._place(temporary=True)
            if not self._is_right():  # as in the probe, a run settles it
                run_on_zeros(interpreter)
                self._place(temporary=True)
        except (RuntimeError, ValueError) as error:
            raise UnexpectedRuntimeError(f"the interpreter rejects the plan: {error}") from error
        self.check()
        return interpreter

    def _is_right(self) -> bool:
        try:
            self.check()
        except UnexpectedRuntimeError:
            return False
        return True

    def check(self) -> None:
        """Check that every tensor has the planned size and place.

        Raises:
            UnexpectedRuntimeError: One does not.
        """
        inside = self._tensors()
        for tensor, address in self._addresses:
            if tensor.index >= len(inside):
                raise UnexpectedRuntimeError(f"tensor {tensor.index} is missing")
            found = inside[tensor.index]
            if found.bytes != tensor.size or found.data != address:
                raise UnexpectedRuntimeError(
                    f"tensor {tensor.index} has {found.bytes} B at {found.data}, expected "
                    f"{tensor.size} B at {address}"
                )

    def found(self) -> list[tuple[int, int]]:
        """Return address and bytes of each planned tensor, as the interpreter states them."""
        inside = self._tensors()
        return [(inside[each.index].data, inside[each.index].bytes) for each, _ in self._addresses]

    def _place(self, *, temporary: bool) -> None:
        inside = self._tensors()
        for tensor, address in self._addresses:
            if tensor.temporary is not temporary:
                continue
            if temporary and tensor.index >= len(inside):
                continue  # made while the model runs
            found = inside[tensor.index]
            if (found.name or b"") != tensor.label:
                raise UnexpectedRuntimeError(f"tensor {tensor.index} differs from the probe")
            if found.bytes <= tensor.size:
                found.allocation_type = AllocationType.CUSTOM
                found.data = address

    def _tensors(self) -> Any:
        return tensors(TfLiteContext.from_address(self._hook.context_address))


def _addresses(
    arena_tensors: Mapping[str, ArenaTensor], problem: Problem, plan: Plan, base: int
) -> list[tuple[ArenaTensor, int]]:
    return [
        (arena_tensors[name], base + offset)
        for record, offset in zip(problem.records, plan.offsets, strict=True)
        for name in record.tensors
    ]
