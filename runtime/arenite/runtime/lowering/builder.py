"""Build the program that the core runs, one step of the model at a time.

Views need no step: a reshaped or transposed tensor is the same storage under another shape
or order. Operators that the kernel before them can apply (a clamp, a scale and shift of
channels) are folded into its step.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from arenite.planner import Array, DType, Program, Quantisation, Step, Tensor, TensorKind
from arenite.planner.errors import UnknownConstantError
from arenite.planner.programs import Names, OperatorSet
from arenite.planner.sizes import Size, bounds, depends, same
from arenite.runtime.lowering.drafts import (
    DraftStep,
    DraftStorage,
    ProgramTensors,
    with_assignments,
)
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import (
    Order,
    Shape,
    StoredValue,
    as_written,
    reshaped,
    same_bytes,
    stored_shape,
    strides,
    transposed,
)
from arenite.runtime.lowering.moves import copy_of, picked
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move


class ProgramBuilder:
    """The program so far.

    Args:
        model: The model to lower.
        quantisations: Quantisation of the model's tensors that do not state it themselves.
        means_as_pools: Whether a mean over rows and columns becomes a pool.
        keeps_bytes: Whether layers of floats may have weights of bytes.

    Attributes:
        model: The model to lower.
        means_as_pools: As given.
        keeps_bytes: As given.
        notes: Notes for the user.
        fallbacks: Why another runtime runs a step, by step of the model.
    """

    def __init__(
        self,
        model: Program,
        quantisations: Mapping[str, Quantisation] | None = None,
        *,
        means_as_pools: bool = True,
        keeps_bytes: bool = False,
    ) -> None:
        self.model = model
        self.means_as_pools = means_as_pools
        self.keeps_bytes = keeps_bytes
        self.notes: list[str] = []
        self.fallbacks: dict[str, str] = {}
        self._stated_quantisations = quantisations or {}
        self._values: dict[str, StoredValue] = {}
        self._shapes: dict[str, Shape] = {}
        self._storages: dict[str, DraftStorage] = {}
        self._constants: dict[str, Array] = {}
        self._constant_shapes: dict[str, Shape] = {}  # of those whose front is taken
        self._quantisations: dict[str, Quantisation] = {}
        self._shared: dict[str, StoredValue] = {}
        self._drafts: list[DraftStep] = []
        self._states: dict[str, StoredValue] = {}
        self._assigned: dict[str, StoredValue] = {}
        self._initial: dict[str, Array] = {}
        self._names = Names(model.tensors)
        self._step_names = Names()
        self._num_readers = Counter(name for each in model.steps for name in each.inputs)
        self._outputs = set(model.output_tensors)

    # The model.

    def array(self, name: str) -> Array | None:
        """Return the elements of a tensor that is constant, and the same at all sizes."""
        value = self._values.get(name)
        if value is not None:
            return value.array
        if name and any(map(depends, self.shape(name))):
            return None
        array = self._stated(name)
        if array is None or array.dtype != object:
            return array
        if self.varies(name):
            return None
        return array.astype(self.model.tensors[name].dtype.label)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return integers that are known before the run, though some may depend on its sizes."""
        array = self.array(name)
        if array is None and not self.has(name):
            array = self._stated(name)
        if array is None:
            return None
        numbers = np.asarray(array).reshape(-1)
        if not all(isinstance(each, int | np.integer) for each in numbers):
            return None
        return tuple(each if isinstance(each, Size) else int(each) for each in numbers)

    def varies(self, name: str) -> bool:
        """Tell whether a constant has elements that depend on the sizes of a run."""
        array = self._stated(name) if self.model.dimensions else None
        if array is None or array.dtype != object:
            return False
        return not all(type(each) in (int, float, bool, Fraction) for each in array.flat)

    def _stated(self, name: str) -> Array | None:
        """Return the elements that the model states for a tensor, at the highest sizes."""
        if not name or self.model.tensors[name].kind is not TensorKind.CONSTANT:
            return None
        return self.model.constants.get(name)

    def value(self, name: str) -> StoredValue:
        """Return where a tensor of the model is.

        Raises:
            UnknownConstantError: It is a constant whose elements are not known.
        """
        if name not in self._values:
            if self.varies(name):
                raise NotLoweredError(
                    f"constant {name!r} has other elements at each size of the range"
                )
            array = self.array(name)
            if array is None:  # or a run takes the front of it
                array = self._stated(name)
            if array is None:
                raise self._unknown(name)
            shape = self.model.tensors[name].shape
            self._values[name] = self._of_front(array, name, shape)
        return self._values[name]

    def _of_front(self, array: Array, name: str, shape: Shape) -> StoredValue:
        """Return a constant of which a run takes the front, if its shape depends on sizes.

        Raises:
            NotLoweredError: The front of it is not what a run of a smaller size has.
        """
        quantisation = self.stated_quantisation(name)
        sized = [axis for axis, length in enumerate(shape) if depends(length)]
        if not sized or (len(sized) == 1 and math.prod(shape[: sized[0]]) == 1):
            return self.constant(array, name, quantisation, shape)
        nan = array.dtype.kind == "f"
        if not array.size or not np.array_equal(
            array, np.broadcast_to(array.flat[0], shape=array.shape), equal_nan=nan
        ):
            raise NotLoweredError(
                f"constant {name!r} has other elements at each size of the range"
            )
        one = self.constant(array.reshape(-1)[:1].reshape((1,) * len(shape)), f"{name}/one")
        none = (0,) * len(shape)
        move = picked(one, shape, none, none)
        return self.emit_one(Copy(moves=(move,)), [one], name, shape, quantisation=quantisation)

    def _unknown(self, name: str) -> KeyError:
        """Return the error for a tensor that no step has made and whose elements are not known."""
        if not name or self.model.tensors[name].kind is not TensorKind.CONSTANT:
            return KeyError(name)
        try:
            self.model.constants[name]
        except UnknownConstantError as error:
            return error
        except KeyError:
            pass
        return UnknownConstantError(name, "the file does not state its elements")

    def has(self, name: str) -> bool:
        """Tell whether a tensor of the model has a value already."""
        return name in self._values

    def add_input(self, name: str, order: Order) -> None:
        """Add an input of the model, stored in an order."""
        tensor = self.model.tensors[name]
        self._values[name] = self._new(name, tensor.dtype, tensor.shape, order, TensorKind.INPUT)
        self._storages[name].model_tensors.append(name)
        self._quantise(name, self.stated_quantisation(name))

    def add_state(self, name: str, initial: Array | None = None) -> None:
        """Add a state, a tensor that is kept from one run to the next.

        Args:
            name: Its name in the model.
            initial: Its initial value if the model states none; zeros by default.
        """
        tensor = self.model.tensors[name]
        if initial is not None and name not in self.model.initial:
            self._initial[name] = initial
        order = as_written(len(tensor.shape))
        state = self._new(name, tensor.dtype, tensor.shape, order, TensorKind.STATE)
        self._values[name] = self._states[name] = state
        self._quantise(name, self.stated_quantisation(name))

    def assign(self, name: str, value: StoredValue) -> None:
        """Give a state a value from here on, and for the next run.

        Args:
            name: The state.
            value: A value of its shape and type, stored in the model's order.
        """
        state = self._states[name]
        self._assigned.pop(name, None)
        if value == state:
            self._values[name] = state
            return
        if value.tensor in self._states:  # which may itself be written before it is read
            value = self._copied(value, f"{name}/next")
        if value.tensor in self._storages:
            self._storages[value.tensor].num_reads += 1
        self._values[name] = self._assigned[name] = value

    def _copied(self, value: StoredValue, hint: str) -> StoredValue:
        quantisation = self._quantisations.get(value.tensor)
        return self.emit_one(copy_of(value), [value], hint, value.shape, quantisation=quantisation)

    def shape(self, name: str) -> Shape:
        return self._shapes.get(name, self.model.tensors[name].shape)

    def restate_shape(self, name: str, shape: Shape) -> None:
        """Replace the shape that the file states for a tensor."""
        self._shapes[name] = shape

    def stated_quantisation(self, name: str) -> Quantisation | None:
        """Return the quantisation of a tensor of the model, None if it has none."""
        tensor = self.model.tensors.get(name)
        stated = None if tensor is None else tensor.quantisation
        return self._stated_quantisations.get(name, stated)

    def is_read_once(self, name: str) -> bool:
        """Tell whether exactly one operator reads the tensor, and not the caller."""
        return self._num_readers[name] == 1 and name not in self._outputs

    def new_name(self, wanted: str) -> str:
        """Return a name like this one that no tensor of the model or of the program has."""
        return self._names.take(wanted)

    # The program.

    def constant(
        self,
        array: Array,
        hint: str,
        quantisation: Quantisation | None = None,
        shape: Shape | None = None,
    ) -> StoredValue:
        """Add a constant.

        Args:
            array: Its elements.
            hint: The tensor of the model that it is, or what it is named after.
            quantisation: How its integers represent numbers.
            shape: Its shape if that depends on sizes: a run takes the front of the elements.
        """
        tensor = self.model.tensors.get(hint)
        is_own = tensor is not None and tensor.kind is TensorKind.CONSTANT
        fits = is_own and hint not in self._constants
        name = hint if fits else self._names.take(f"{hint}/constant")
        array = np.asarray(array, order="C")
        self._constants[name] = array
        self._quantise(name, quantisation)
        dtype, order = DType.of_label(array.dtype.name), as_written(array.ndim)
        if shape is not None and any(map(depends, shape)):
            self._constant_shapes[name] = shape
            return StoredValue(name, dtype, shape, order)
        return StoredValue(name, dtype, array.shape, order, 0, array)

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        outputs: Sequence[tuple[str, Shape, Order]],
        *,
        dtype: DType | Sequence[DType] | None = None,
        step: str = "",
        quantisation: Quantisation | None = None,
    ) -> list[StoredValue]:
        """Add a step and return its outputs.

        Args:
            operator: The operator of the core.
            inputs: Its inputs; None where an optional one is left out.
            outputs: For each output its name, the model's if it has one, shape and order.
            dtype: Type of the outputs, one or one each; by default that of the first input.
            step: Name of the step; by default that of the first output.
            quantisation: Quantisation of the outputs; by default that of the model.
        """
        if dtype is None:
            assert inputs[0] is not None
            dtype = inputs[0].dtype
        dtypes = [dtype] * len(outputs) if isinstance(dtype, DType) else dtype
        made: list[StoredValue] = []
        draft = DraftStep(
            self._step_names.take(step or outputs[0][0]), operator, list(inputs), made
        )
        for (name, shape, order), each in zip(outputs, dtypes, strict=True):
            unique = name if name in self.model.tensors and name not in self._storages else ""
            unique = unique or self._names.take(name)
            made.append(self._new(unique, each, shape, order, TensorKind.ACTIVATION))
            self._storages[unique].draft = draft
            self._quantise(unique, quantisation or self.stated_quantisation(name))
        for value in inputs:
            if value is not None and value.tensor in self._storages:
                self._storages[value.tensor].num_reads += 1
        self._drafts.append(draft)
        return made

    def emit_one(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        name: str,
        shape: Shape,
        order: Order | None = None,
        *,
        dtype: DType | None = None,
        step: str = "",
        quantisation: Quantisation | None = None,
    ) -> StoredValue:
        """Add a step with one output and return that; by default it is stored as written."""
        output = name, shape, as_written(len(shape)) if order is None else order
        (made,) = self.emit(
            operator, inputs, [output], dtype=dtype, step=step, quantisation=quantisation
        )
        return made

    def made_once(self, name: str, make: Callable[[], StoredValue]) -> StoredValue:
        """Return what steps of several operators read, made where the first of them needs it."""
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def bind(self, name: str, value: StoredValue) -> None:
        """Make a tensor of the model stand for an existing value."""
        self._values[name] = value
        if value.tensor in self._storages:
            self._storages[value.tensor].model_tensors.append(name)

    # Views and copies.

    def in_order(self, value: StoredValue, order: Order, hint: str) -> StoredValue:
        """Return the value stored in an order, with a step that copies it if needed."""
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
        return self.emit_one(
            Copy(moves=(move,)), [value], f"{hint}/transposed", value.shape, order,
            quantisation=self._quantisations.get(value.tensor),
        )  # fmt: skip

    def as_written(self, value: StoredValue, hint: str) -> StoredValue:
        """Return the value stored in the model's own order."""
        return self.in_order(value, as_written(len(value.shape)), hint)

    def reshaped(self, value: StoredValue, shape: Shape, hint: str) -> StoredValue:
        """Return the value under another shape.

        Raises:
            NotLoweredError: The numbers of elements differ.
        """
        if any(map(depends, (*value.shape, *shape))):
            value = replace(value, shape=self._plain(value.shape))
            shape = self._plain(shape)
        if not same(math.prod(value.shape), math.prod(shape)):
            sizes = " and ".join(str(list(each)) for each in (value.shape, shape))
            raise NotLoweredError(f"shapes {sizes} have different numbers of elements")
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

    def _plain(self, shape: Shape) -> Shape:
        """Return a shape with lengths that are the same at all sizes as plain integers."""
        ends = [bounds(length, self.model.dimensions) for length in shape]
        return tuple(
            low if low == high else length for length, (low, high) in zip(shape, ends, strict=True)
        )

    def agree(self, one: Shape, other: Shape) -> bool:
        """Tell whether two shapes are equal at all sizes, however they are computed."""
        return len(one) == len(other) and all(
            same(*pair)
            or (pair[0] == pair[1] and bounds(pair[0] - pair[1], self.model.dimensions) == (0, 0))
            for pair in zip(one, other, strict=True)
        )

    @staticmethod
    def transposed(value: StoredValue, axes: Sequence[int]) -> StoredValue:
        """Return the value with its axes permuted: axis i of it is axis axes[i].

        Raises:
            NotLoweredError: They are not all of its axes, once each.
        """
        if sorted(axes) != list(range(len(value.shape))):
            raise NotLoweredError(f"{list(axes)} is not a permutation of {len(value.shape)} axes")
        shape = tuple(value.shape[axis] for axis in axes)
        array = None if value.array is None else value.array.transpose(axes)
        return replace(value, shape=shape, order=transposed(value.order, axes), array=array)

    def quantisation(self, value: StoredValue) -> Quantisation | None:
        return self._quantisations.get(value.tensor)

    def _quantise(self, name: str, quantisation: Quantisation | None) -> None:
        if quantisation is not None:
            self._quantisations[name] = quantisation

    # Folding.

    def producer(self, name: str) -> DraftStep | None:
        """Return the step that makes a tensor, if its only reader may be folded into that."""
        value = self._values.get(name)
        storage = self._storages.get(value.tensor) if value is not None else None
        if value is None or storage is None or storage.draft is None or value.offset:
            return None
        fits = (
            len(storage.draft.outputs) == 1
            and storage.num_reads == 0
            and all(map(self.is_read_once, storage.model_tensors))
            and same(math.prod(storage.tensor.shape), math.prod(value.shape))
        )
        return storage.draft if fits else None

    # The end.

    def finish(self) -> Program:
        outputs = [self._settled(name) for name in self.model.output_tensors]
        self._write_states(outputs)
        live = self._live_drafts({value.tensor for value in outputs})
        tensors = ProgramTensors(
            self._storages,
            self._constants,
            self._constant_shapes,
            self._quantisations,
            self._names,
        )
        steps = [
            Step(
                draft.name,
                draft.operator,
                tuple("" if each is None else tensors.named(each) for each in draft.inputs),
                tuple(tensors.named(each) for each in draft.outputs),
            )
            for draft in live
        ]
        inputs = [tensors.port(port.name, self.value(port.tensor)) for port in self.model.inputs]
        results = [
            tensors.port(port.name, value)
            for port, value in zip(self.model.outputs, outputs, strict=True)
        ]
        tensors.mark_outputs(value.tensor for value in outputs)
        stated = {name: self.model.constants[at] for name, at in self.model.initial.items()}
        initial = {
            name: tensors.initial(name, array)
            for name, array in {**stated, **self._initial}.items()
        }
        return Program.of(
            self.model.name,
            tensors.found.values(),
            steps,
            inputs,
            results,
            (*self.model.notes, *self.notes),
            operator_set=OperatorSet.ARENITE,
            constants=tensors.constants,
            initial=initial,
            dimensions=self.model.dimensions,
            caches=self.model.caches,
        )

    def _settled(self, name: str) -> StoredValue:
        """Return an output, copied if it lies in a state that is about to be written."""
        value = self.value(name)
        return self._copied(value, name) if value.tensor in self._assigned else value

    def _write_states(self, outputs: Iterable[StoredValue]) -> None:
        """Add steps that write the states whose makers cannot write them.

        A value that is quantised in another way is a copy of its bytes, which no kernel makes.
        """
        fixed = {value.tensor for value in outputs}
        for name, value in self._assigned.items():
            storage = self._storages.get(value.tensor)
            unlike = self.quantisation(value) != self.quantisation(self._states[name])
            if storage is None or storage.draft is None or unlike:
                fixed.add(value.tensor)
        self._drafts = with_assignments(
            self._drafts, self._assigned, self._states, fixed, self._step_names
        )

    def _live_drafts(self, needed: set[str]) -> list[DraftStep]:
        needed = set(needed)
        needed.update(
            name for name, s in self._storages.items() if s.tensor.kind is TensorKind.STATE
        )
        live: list[DraftStep] = []
        for draft in reversed(self._drafts):
            # A size that a step counts may be all that others take from it.
            counts = draft.operator.counts and any(map(depends, draft.outputs[0].shape))
            if counts or any(value.tensor in needed for value in draft.outputs):
                live.append(draft)
                needed.update(value.tensor for value in draft.inputs if value is not None)
        return live[::-1]

    def _new(
        self, name: str, dtype: DType, shape: Shape, order: Order, kind: TensorKind
    ) -> StoredValue:
        self._storages[name] = DraftStorage(Tensor(name, dtype, stored_shape(shape, order), kind))
        return StoredValue(name, dtype, shape, order)
