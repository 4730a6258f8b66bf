"""Builds the program of a model, one operator of the model at a time.

Views cost no step: a reshaped or transposed tensor is the same storage under another shape
or order. What follows a step and can be done by it (a clamp, a scale and shift of channels)
is folded into it.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.names import Names
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import (
    Order,
    Shape,
    as_written,
    reshaped,
    same_bytes,
    stored_shape,
    strides,
    transposed,
)
from arenite.runtime.lowering.lowered import (
    Array,
    Lowered,
    Operand,
    Port,
    Quantisation,
    State,
    Step,
)
from arenite.runtime.program.operators import Copy, External, Move, RuntimeOperator


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the model, and where its bytes are.

    Attributes:
        tensor: The storage or constant.
        dtype: Element type.
        shape: In the model.
        order: Of the stored axes.
        offset: First byte in the storage.
        array: The elements in the model's order, of a constant.
    """

    tensor: str
    dtype: DType
    shape: Shape
    order: Order
    offset: int = 0
    array: Array | None = None

    @property
    def stored(self) -> Shape:
        """Lengths of the stored axes."""
        return stored_shape(self.shape, self.order)

    @property
    def as_stored(self) -> "Value":
        """The value under its stored shape."""
        return replace(self, shape=self.stored, order=as_written(len(self.shape)))

    @property
    def operand(self) -> Operand:
        """What a step is given."""
        return Operand(self.tensor, self.stored, self.offset)


@dataclass(slots=True)
class Draft:
    """A step while it may still take in what follows."""

    name: str
    op_type: str
    operator: RuntimeOperator
    inputs: list[Value | None]
    outputs: list[Value]

    @property
    def scratch(self) -> int:
        """Bytes of working memory."""
        return self.operator.scratch(
            [None if value is None else value.as_stored for value in self.inputs],
            [value.as_stored for value in self.outputs],
        )


@dataclass(slots=True)
class _Storage:
    tensor: Tensor
    model_tensors: list[str] = field(default_factory=list)
    num_reads: int = 0
    draft: Draft | None = None


class Builder:
    """The program so far.

    Args:
        graph: The model.
        constant: Gives the elements of a constant of the model; None if they are unknown.
        quantisation: Says how a tensor's integers stand for numbers, if they do.
        supported: Names of the operators that the core runs; None for all there are.

    Attributes:
        notes: What the user should know.
        fallbacks: By operator, why another runtime runs it.
    """

    def __init__(
        self,
        graph: Graph,
        constant: Callable[[str], Array | None],
        quantisation: Callable[[str], Quantisation | None] = lambda _name: None,
        supported: Container[str] | None = None,
    ) -> None:
        self.graph = graph
        self._supported = supported
        self.notes: list[str] = []
        self.fallbacks: dict[str, str] = {}
        self._constant = constant
        self._stated_quantisation = quantisation
        self._values: dict[str, Value] = {}
        self._shapes: dict[str, Shape] = {}
        self._storages: dict[str, _Storage] = {}
        self._constants: dict[str, Array] = {}
        self._quantisations: dict[str, Quantisation] = {}
        self._drafts: list[Draft] = []
        self._names = Names(graph.tensors)
        self._step_names = Names()
        self._num_readers = Counter(name for each in graph.operators for name in each.inputs)
        self._outputs = set(graph.outputs)

    # What the model has.

    def array(self, name: str) -> Array | None:
        """Return the elements of a tensor that is constant."""
        value = self._values.get(name)
        if value is not None:
            return value.array
        if not name or self.graph.tensors[name].kind is not TensorKind.CONSTANT:
            return None
        return self._constant(name)

    def value(self, name: str) -> Value:
        """Return where a tensor of the model is."""
        if name not in self._values:
            array = self.array(name)
            if array is None:
                raise KeyError(name)
            self._values[name] = self.constant(array, name, self._stated_quantisation(name))
        return self._values[name]

    def has(self, name: str) -> bool:
        """Tell whether a tensor of the model has been given a value."""
        return name in self._values

    def add_input(self, name: str, order: Order) -> None:
        """Let a graph input be stored in an order."""
        tensor = self.graph.tensors[name]
        self._values[name] = self._new(name, tensor.dtype, tensor.shape, order, TensorKind.INPUT)
        self._storages[name].model_tensors.append(name)
        self._quantise(name, self._stated_quantisation(name))

    def add_state(self, name: str) -> None:
        """Keep a tensor from one run to the next."""
        tensor = self.graph.tensors[name]
        order = as_written(len(tensor.shape))
        self._values[name] = self._new(name, tensor.dtype, tensor.shape, order, TensorKind.STATE)
        self._quantise(name, self._stated_quantisation(name))

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor of the model."""
        return self._shapes.get(name, self.graph.tensors[name].shape)

    def restate_shape(self, name: str, shape: Shape) -> None:
        """Let a tensor have another shape than its file states."""
        self._shapes[name] = shape

    def stated_quantisation(self, name: str) -> Quantisation | None:
        """Return how the integers of a tensor of the model stand for numbers, if they do."""
        return self._stated_quantisation(name)

    def is_read_once(self, name: str) -> bool:
        """Tell whether one operator reads the tensor and the caller does not."""
        return self._num_readers[name] == 1 and name not in self._outputs

    # What the program gets.

    def constant(self, array: Array, hint: str, quantisation: Quantisation | None = None) -> Value:
        """Return a constant of these elements."""
        tensor = self.graph.tensors.get(hint)
        is_own = tensor is not None and tensor.kind is TensorKind.CONSTANT
        fits = is_own and hint not in self._constants
        name = hint if fits else self._names.take(f"{hint}/constant")
        array = np.asarray(array, order="C")
        self._constants[name] = array
        self._quantise(name, quantisation)
        return Value(name, _dtype(array), array.shape, as_written(array.ndim), 0, array)

    def emit(
        self,
        op_type: str,
        operator: RuntimeOperator,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[str, Shape, Order]],
        *,
        dtype: DType | None = None,
        step: str = "",
        quantisation: Quantisation | None = None,
    ) -> list[Value]:
        """Add a step and return what it makes.

        Args:
            op_type: For people, and for what the planner knows of in-place operators.
            operator: What the core runs.
            inputs: None where an optional one is left out.
            outputs: For each a name, the model's if it has one, its shape and order.
            dtype: Of the outputs; by default that of the first input.
            step: Name of the step; by default that of the first output.
            quantisation: Of the outputs; by default what the model states.

        Raises:
            NotLoweredError: The core does not run the operator.
        """
        kind = type(operator).__name__
        if not (self._supported is None or kind in self._supported or kind == External.__name__):
            raise NotLoweredError(f"this build of the core has no {kind}")
        if dtype is None:
            assert inputs[0] is not None
            dtype = inputs[0].dtype
        made: list[Value] = []
        if not all(map(self._is_whole, inputs)):
            # What the planner knows of parts is of storages as they are, not of views.
            op_type = _OF_VIEWS.get(op_type, op_type)
        draft = Draft(
            self._step_names.take(step or outputs[0][0]), op_type, operator, list(inputs), made
        )
        for name, shape, order in outputs:
            unique = name if name in self.graph.tensors and name not in self._storages else ""
            unique = unique or self._names.take(name)
            made.append(self._new(unique, dtype, shape, order, TensorKind.ACTIVATION))
            self._storages[unique].draft = draft
            stated = self._stated_quantisation(name) if name in self.graph.tensors else None
            self._quantise(unique, quantisation or stated)
        for value in inputs:
            if value is not None and value.tensor in self._storages:
                self._storages[value.tensor].num_reads += 1
        self._drafts.append(draft)
        return made

    def bind(self, name: str, value: Value) -> None:
        """Let a tensor of the model be a value that exists."""
        self._values[name] = value
        if value.tensor in self._storages:
            self._storages[value.tensor].model_tensors.append(name)

    # Views and copies.

    def in_order(self, value: Value, order: Order, hint: str) -> Value:
        """Return the value stored in an order, moved there if its bytes have to move."""
        if same_bytes(value.shape, value.order, order):
            return replace(value, order=order)
        if value.array is not None:
            moved = value.array.transpose(order)
            constant = self.constant(moved, hint)
            return replace(value, tensor=constant.tensor, order=order, offset=0)
        source = strides(value.shape, value.order)
        move = Move(
            shape=stored_shape(value.shape, order),
            input_strides=tuple(source[axis] for axis in order),
            output_strides=strides(stored_shape(value.shape, order), as_written(len(order))),
        )
        name = f"{hint}/transposed"
        (result,) = self.emit(
            "Transpose", Copy(moves=(move,)), [value], [(name, value.shape, order)],
            quantisation=self._quantisations.get(value.tensor),
        )  # fmt: skip
        return result

    def as_written(self, value: Value, hint: str) -> Value:
        """Return the value stored in the model's own order."""
        return self.in_order(value, as_written(len(value.shape)), hint)

    def reshaped(self, value: Value, shape: Shape, hint: str) -> Value:
        """Return the value under another shape."""
        if value.array is not None:
            array = value.array.reshape(shape)
            if value.order == as_written(len(value.shape)):
                return replace(value, shape=shape, order=as_written(len(shape)), array=array)
            return self.constant(array, hint)
        orders = reshaped(value.shape, value.order, shape)
        if orders is None:
            return replace(value, shape=shape, order=as_written(len(shape)))
        needed, result = orders
        return replace(self.in_order(value, needed, hint), shape=shape, order=result)

    @staticmethod
    def transposed(value: Value, axes: Sequence[int]) -> Value:
        """Return the value with its axes permuted: axis i of it is axis axes[i]."""
        shape = tuple(value.shape[axis] for axis in axes)
        array = None if value.array is None else value.array.transpose(axes)
        return replace(value, shape=shape, order=transposed(value.order, axes), array=array)

    def quantisation(self, value: Value) -> Quantisation | None:
        """Return how the value's integers stand for numbers, if they do."""
        return self._quantisations.get(value.tensor)

    def _is_whole(self, value: Value | None) -> bool:
        storage = None if value is None else self._storages.get(value.tensor)
        return value is None or storage is None or storage.tensor.shape == value.stored

    def _quantise(self, name: str, quantisation: Quantisation | None) -> None:
        if quantisation is not None:
            self._quantisations[name] = quantisation

    # Folding.

    def producer(self, name: str) -> Draft | None:
        """Return the step that may take in what the only reader of a tensor does."""
        value = self._values.get(name)
        storage = self._storages.get(value.tensor) if value is not None else None
        if value is None or storage is None or storage.draft is None or value.offset:
            return None
        fits = (
            len(storage.draft.outputs) == 1
            and storage.num_reads == 0
            and all(map(self.is_read_once, storage.model_tensors))
            and math.prod(storage.tensor.shape) == math.prod(value.shape)
        )
        return storage.draft if fits else None

    # The end.

    def finish(self) -> Lowered:
        """Return the program."""
        inputs = [self._port(name) for name in self.graph.inputs]
        outputs = [self._port(name) for name in self.graph.outputs]
        live = self._live_drafts({port.operand.tensor for port in outputs})
        output_storages = dict.fromkeys(
            port.operand.tensor for port in outputs if port.operand.tensor in self._storages
        )
        return Lowered(
            graph=self._graph(live, tuple(output_storages)),
            steps={draft.name: _step(draft) for draft in live},
            constants={
                name: self._constants[name] for name in self._used_constants(live, outputs)
            },
            quantisations=self._quantisations,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            states=tuple(
                State(name, self._constant(name))
                for name, storage in self._storages.items()
                if storage.tensor.kind is TensorKind.STATE
            ),
            notes=tuple(self.notes),
        )

    def _graph(self, live: list[Draft], outputs: tuple[str, ...]) -> Graph:
        used = {
            value.tensor for draft in live for value in (*draft.inputs, *draft.outputs) if value
        }
        used.update(self.graph.inputs, outputs)
        tensors = [
            replace(storage.tensor, kind=TensorKind.OUTPUT)
            if name in outputs and storage.tensor.kind is TensorKind.ACTIVATION
            else storage.tensor
            for name, storage in self._storages.items()
            if name in used or storage.tensor.kind is TensorKind.STATE
        ]
        tensors += [
            Tensor(name, _dtype(array), array.shape, TensorKind.CONSTANT)
            for name, array in self._constants.items()
            if name in used
        ]
        operators = [
            Operator(
                draft.name,
                draft.op_type,
                tuple("" if value is None else value.tensor for value in draft.inputs),
                tuple(value.tensor for value in draft.outputs),
                scratch=draft.scratch,
            )
            for draft in live
        ]
        return Graph.of(
            self.graph.name, tensors, operators, self.graph.inputs, outputs, self.graph.notes
        )

    def _live_drafts(self, needed: set[str]) -> list[Draft]:
        needed = set(needed)
        needed.update(
            name for name, s in self._storages.items() if s.tensor.kind is TensorKind.STATE
        )
        live: list[Draft] = []
        for draft in reversed(self._drafts):
            if any(value.tensor in needed for value in draft.outputs):
                live.append(draft)
                needed.update(value.tensor for value in draft.inputs if value is not None)
        return live[::-1]

    def _used_constants(self, live: list[Draft], outputs: list[Port]) -> list[str]:
        used = {value.tensor for draft in live for value in draft.inputs if value is not None}
        used.update(port.operand.tensor for port in outputs)
        return [name for name in self._constants if name in used]

    def _port(self, name: str) -> Port:
        value = self.value(name)
        return Port(name, value.operand, value.shape, value.order)

    def _new(self, name: str, dtype: DType, shape: Shape, order: Order, kind: TensorKind) -> Value:
        self._storages[name] = _Storage(Tensor(name, dtype, stored_shape(shape, order), kind))
        return Value(name, dtype, shape, order)


def _step(draft: Draft) -> Step:
    return Step(
        draft.operator,
        tuple(None if value is None else value.operand for value in draft.inputs),
        tuple(value.operand for value in draft.outputs),
    )


_OF_VIEWS = {"Concat": "Join", "Split": "Cut"}

_DTYPES = {dtype.label: dtype for dtype in DType}


def _dtype(array: Array) -> DType:
    return _DTYPES[array.dtype.name]
