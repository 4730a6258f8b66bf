"""The steps of a program that is being built, and how they become a program.

A model may read a state, compute, assign, and read again. Reads after an assignment take the
assigned value, so the state itself holds the value of the last run for as long as a step reads it,
and is written once: right behind the last of these steps, or by the step that makes the value, if
that comes later.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from arenite.planner import Alias, Array, DType, Port, Quantisation, Tensor, TensorKind
from arenite.planner.programs import Names
from arenite.planner.sizes import Expression, same, same_lengths
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written
from arenite.runtime.lowering.moves import copy_of
from arenite.runtime.operators.base import RuntimeOperator


@dataclass(slots=True)
class DraftStep:
    """A step into which the operators that follow may still be folded."""

    name: str
    operator: RuntimeOperator
    inputs: list[StoredValue | None]
    outputs: list[StoredValue]


@dataclass(slots=True)
class DraftStorage:
    """The storage of a tensor that is being built.

    Attributes:
        tensor: The tensor of the program.
        model_tensors: Tensors of the model that it stands for.
        num_reads: Steps that read it.
        draft: The step that writes it; None for inputs and states.
    """

    tensor: Tensor
    model_tensors: list[str] = field(default_factory=list)
    num_reads: int = 0
    draft: DraftStep | None = None


class ProgramTensors:
    """The tensors of a program, created when its steps refer to them.

    A storage under another shape, or from another byte on, is a separate tensor with an alias.
    """

    def __init__(
        self,
        storages: Mapping[str, DraftStorage],
        constants: Mapping[str, Array],
        constant_shapes: Mapping[str, Shape],
        quantisations: Mapping[str, Quantisation],
        names: Names,
    ) -> None:
        self._storages = storages
        self._all_constants = constants
        self._constant_shapes = constant_shapes
        self._quantisations = quantisations
        self._names = names
        self._views: dict[tuple[str, tuple[Expression, ...], Expression], str] = {}
        self.found: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        for storage in storages.values():
            if storage.tensor.kind in (TensorKind.INPUT, TensorKind.STATE):
                self._add(storage.tensor)

    def named(self, value: StoredValue) -> str:
        whole = self._whole(value.tensor)
        if same_lengths(whole.shape, value.stored) and same(value.offset, 0):
            return whole.name
        lengths = tuple(map(Expression.of, value.stored))
        key = (whole.name, lengths, Expression.of(value.offset))
        if key not in self._views:
            kind = TensorKind.ACTIVATION
            if whole.kind is TensorKind.CONSTANT:
                kind = TensorKind.CONSTANT
            name = self._names.take(f"{whole.name}/view")
            self._views[key] = name
            self._add(
                Tensor(
                    name, whole.dtype, value.stored, kind, Alias(whole.name, value.offset),
                    whole.quantisation,
                )
            )  # fmt: skip
        return self._views[key]

    def port(self, name: str, value: StoredValue) -> Port:
        """Return the port through which the caller sees a value."""
        is_plain = value.order == as_written(len(value.order))
        return Port(name, self.named(value), None if is_plain else value.order)

    def mark_outputs(self, names: Iterable[str]) -> None:
        for name in names:
            if self.found[name].kind is TensorKind.ACTIVATION:
                self.found[name] = replace(self.found[name], kind=TensorKind.OUTPUT)

    def initial(self, state: str, array: Array) -> str:
        """Return the name of a new constant, the initial value of a state."""
        name = self._names.take(f"{state}/initial")
        self.constants[name] = np.asarray(array, order="C")
        self._add(Tensor(name, DType.of_label(array.dtype.name), array.shape, TensorKind.CONSTANT))
        return name

    def _whole(self, name: str) -> Tensor:
        if name not in self.found:
            storage = self._storages.get(name)
            if storage is not None:
                self._add(storage.tensor)
            else:
                array = self.constants[name] = self._all_constants[name]
                shape = self._constant_shapes.get(name, array.shape)
                dtype = DType.of_label(array.dtype.name)
                self._add(Tensor(name, dtype, shape, TensorKind.CONSTANT))
        return self.found[name]

    def _add(self, tensor: Tensor) -> None:
        quantisation = self._quantisations.get(tensor.name, tensor.quantisation)
        self.found[tensor.name] = replace(tensor, quantisation=quantisation)


def with_assignments(
    drafts: list[DraftStep],
    assigned: Mapping[str, StoredValue],
    states: Mapping[str, StoredValue],
    fixed: Collection[str],
    names: Names,
) -> list[DraftStep]:
    """Return the steps with those that write states.

    Args:
        drafts: The steps in their order.
        assigned: StoredValue assigned to each state; none lies in a state.
        states: The states themselves.
        fixed: Storages and constants that no step can make in a state's place.
        names: Names of the steps.
    """
    several = [value.tensor for value in assigned.values()]
    for name, value in assigned.items():
        state = states[name]
        last_read = max((n for n, d in enumerate(drafts) if _reads(d, name)), default=-1)
        made = max((n for n, d in enumerate(drafts) if _makes(d, value.tensor)), default=-1)
        free = value.tensor not in fixed and several.count(value.tensor) == 1
        if free and last_read < made and _is_all_of(drafts[made], value, state):
            drafts = [_renamed(draft, value.tensor, name) for draft in drafts]
        else:
            draft = DraftStep(names.take(f"{name}/assigned"), copy_of(value), [value], [state])
            drafts = [*drafts[: (at := max(last_read, made) + 1)], draft, *drafts[at:]]
    return drafts


def _reads(draft: DraftStep, storage: str) -> bool:
    return any(value is not None and value.tensor == storage for value in draft.inputs)


def _makes(draft: DraftStep, storage: str) -> bool:
    return any(value.tensor == storage for value in draft.outputs)


def _is_all_of(draft: DraftStep, value: StoredValue, state: StoredValue) -> bool:
    """Tell whether the step makes the value as the state stores it, and nothing else."""
    made = next(each for each in draft.outputs if each.tensor == value.tensor)
    is_as_written = value.order == as_written(len(value.shape))
    return (
        (made.dtype, value.offset) == (state.dtype, 0)
        and same_lengths(made.stored, state.stored)
        and is_as_written
        and same(math.prod(value.shape), math.prod(state.shape))
    )


def _renamed(draft: DraftStep, old: str, new: str) -> DraftStep:
    def moved(value: StoredValue) -> StoredValue:
        return replace(value, tensor=new) if value.tensor == old else value

    inputs = [None if value is None else moved(value) for value in draft.inputs]
    return replace(draft, inputs=inputs, outputs=[moved(value) for value in draft.outputs])
