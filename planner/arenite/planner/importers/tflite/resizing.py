"""Infer the sizes of tensors for other shapes of the inputs.

The file states the sizes of all tensors for one shape of its inputs. Tensors that depend on a
resized input are inferred, operator by operator. So are tensors that depend on values that the
model computes from shapes alone: converters leave such sizes open, and the file states a wrong
one. All other tensors keep the shape in the file.
"""

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from arenite.planner.errors import BindingError
from arenite.planner.importers.tflite.shapes import (
    SHAPE,
    SHAPES,
    MisfitError,
    Resized,
    Shape,
    broadcast,
    require,
    strided,
    whole,
)
from arenite.planner.operators.imported import Imported
from arenite.planner.programs.program import Array, Program, Step
from arenite.planner.sizes import Size, depends, largest, same_lengths, smallest
from arenite.planner.tensors import DType, TensorKind

MAX_VALUES = 65_536
"""Most elements of a computed value; larger ones are weights, not shapes."""


def _shape(code: str, r: Resized) -> Shape:
    return SHAPES[code](r)[0]


def _counted(start: float, end: float, step: float) -> Array:
    count = math.ceil((end - start) / step)
    require(count <= MAX_VALUES, f"output has {count} elements, at most {MAX_VALUES} expected")
    return np.arange(start, end, step)


def _plain_index(r: Resized) -> tuple[slice | int, ...]:
    """Return the index of a STRIDED_SLICE of a value, which is one for all sizes."""
    require(not any(map(depends, (*r.integers(1), *r.integers(2)))), "an end depends on the sizes")
    return tuple(strided(r))


def _array(found: Any) -> Array:
    """Return a result of numpy as an array, which an element that is a size is not."""
    return np.asarray(found, object if isinstance(found, Size) else None)


def _are_plain(arrays: list[Array]) -> bool:
    return all(each.dtype != object for each in arrays)


_LARGEST, _SMALLEST = np.frompyfunc(largest, 2, 1), np.frompyfunc(smallest, 2, 1)

VALUES: Mapping[str, Callable[[Resized, list[Array]], list[Array]]] = {
    "ADD": lambda _r, a: [_array(a[0] + a[1])],
    "BROADCAST_ARGS": lambda _r, a: [np.array(broadcast(*map(tuple, a)), a[0].dtype)],
    "CAST": lambda _r, a: a,
    "CONCATENATION": lambda r, a: [np.concatenate(a, r.integer("Axis"))],
    "EXPAND_DIMS": lambda r, a: [a[0].reshape(_shape("EXPAND_DIMS", r))],
    "FILL": lambda r, a: [np.full(_shape("FILL", r), a[1])],
    "FLOOR_DIV": lambda _r, a: [_array(a[0] // a[1])],
    "FLOOR_MOD": lambda _r, a: [_array(a[0] % a[1])],
    "GATHER": lambda r, a: [_array(np.take(a[0], a[1], r.integer("Axis")))],
    "MAXIMUM": lambda _r, a: [np.maximum(*a) if _are_plain(a) else _array(_LARGEST(*a))],
    "MINIMUM": lambda _r, a: [np.minimum(*a) if _are_plain(a) else _array(_SMALLEST(*a))],
    "MUL": lambda _r, a: [_array(a[0] * a[1])],
    "PACK": lambda r, a: [np.stack(a, r.integer("Axis"))],
    "RANGE": lambda _r, a: [_counted(*(each.item() for each in a))],
    "REDUCE_PROD": lambda _r, a: [_array(np.prod(a[0], tuple(a[1].reshape(-1))))],
    "RESHAPE": lambda r, a: [a[0].reshape(_shape("RESHAPE", r))],
    SHAPE: lambda r, _a: [np.array(r.source, object if any(map(depends, r.source)) else np.int64)],
    "SPLIT_V": lambda r, a: np.split(a[0], np.cumsum(a[1])[:-1], r.axis(r.integers(2)[0])),
    "SQUEEZE": lambda r, a: [a[0].reshape(_shape("SQUEEZE", r))],
    "STRIDED_SLICE": lambda r, a: [_array(a[0][_plain_index(r)])],
    "SUB": lambda _r, a: [_array(a[0] - a[1])],
    "TRANSPOSE": lambda _r, a: [a[0].transpose(a[1])],
    "UNPACK": lambda r, a: list(np.moveaxis(a[0], r.integer("Axis"), 0)),
}
"""Shape arithmetic that converters emit: the elements of the outputs, of any type."""


_MOST_BYTES = 2**62
_INTEGERS = (DType.INT32, DType.INT64)
_MISFITS = (MisfitError, ArithmeticError, IndexError, TypeError, ValueError)


def resized(
    program: Program, shapes: Mapping[str, Shape], varying: Collection[str] = ()
) -> Program:
    """Return the program with inputs of other shapes, and sizes that follow from shapes.

    Args:
        program: The program, read with its constants and the options of its operators.
        shapes: New shapes of inputs, by name; none to infer only what the model computes.
        varying: Tensors that have other shapes at other sizes; what reads them is inferred, even
            if they have the shape in the file.

    Raises:
        BindingError: An operator does not take them, or is not known to pass them on.

    Cost: O(operands of the steps).
    """
    return _Inference(program, shapes, varying).program()


def computes_shapes(program: Program) -> bool:
    """Tell whether a program makes values of shapes."""
    return any(step.operator.label == SHAPE for step in program.steps)


class _Inference:
    def __init__(
        self, program: Program, shapes: Mapping[str, Shape], varying: Collection[str]
    ) -> None:
        self._program = program
        self._varying = varying
        self._input_names = tuple(shapes)
        self._input = ", ".join(shapes) or program.name
        self._tensors = {
            name: replace(tensor, shape=shapes.get(name, tensor.shape))
            for name, tensor in program.tensors.items()
        }
        self._values: dict[str, Array] = {}
        # Values of which a size has the first elements.
        self._fronts: dict[str, Array] = {}
        # Tensors whose shape does not depend on values of the run.
        self._certain = {
            name
            for name, tensor in program.tensors.items()
            if tensor.kind in (TensorKind.INPUT, TensorKind.CONSTANT, TensorKind.STATE)
        }

    def program(self) -> Program:
        for step in self._program.steps:
            is_certain = self._certain.issuperset(step.reads)
            if any(self._is_new(name) for name in step.reads):
                self._resize(step)
            elif is_certain and step.operator.label == SHAPE:
                asked = self._asked(step)
                self._evaluate(step, asked, SHAPES[SHAPE](asked))
            elif is_certain and not self._follows_shapes(step):
                continue
            if is_certain:
                self._certain.update(step.outputs)
        if not any(depends(n) for name in self._input_names for n in self._tensors[name].shape):
            return replace(self._program, tensors=self._tensors)
        return self._without_values()

    def _without_values(self) -> Program:
        """Return the program with what is computed of shapes alone as constants."""
        program = self._program
        known = {
            name: each if each.dtype == object else each.astype(self._tensors[name].dtype.label)
            for name, each in {**self._values, **self._fronts}.items()
            if name not in program.output_tensors
        }
        tensors = {
            name: replace(tensor, kind=TensorKind.CONSTANT) if name in known else tensor
            for name, tensor in self._tensors.items()
        }
        steps = tuple(step for step in program.steps if not known.keys() >= {*step.writes})
        constants = ChainMap(known, program.constants)  # type: ignore[arg-type]
        return replace(program, tensors=tensors, steps=steps, constants=constants)

    def _follows_shapes(self, step: Step) -> bool:
        """Tell whether the shapes of a step's results follow from those of its operands."""
        infer = SHAPES.get(step.operator.label)
        try:
            return infer is not None and bool(infer(self._asked(step)))
        except _MISFITS:
            return False

    def _is_new(self, name: str) -> bool:
        shape = self._program.tensors[name].shape
        if name in self._values or name in self._varying:
            return True
        return not same_lengths(self._tensors[name].shape, shape)

    def _resize(self, step: Step) -> None:
        assert isinstance(step.operator, Imported)
        infer = SHAPES.get(step.operator.label)
        try:
            if infer is None:
                raise MisfitError("its output shapes cannot be derived")
            asked = self._asked(step)
            found = infer(asked)
            if len(found) != len(step.outputs):
                raise MisfitError(f"{len(step.outputs)} outputs, expected {len(found)}")
            self._evaluate(step, asked, found)
        except MisfitError as reason:
            raise BindingError(
                self._input, f"cannot have this shape: {step.name}: {reason}"
            ) from reason
        except _MISFITS as error:
            raise BindingError(
                self._input, f"cannot have this shape: {step.name}: operands do not fit"
            ) from error
        for name, shape in zip(step.outputs, found, strict=True):
            tensor = replace(self._tensors[name], shape=tuple(map(whole, shape)))
            if tensor.size > _MOST_BYTES:
                raise BindingError(self._input, f"makes {name!r} too large: {tensor.shape}")
            self._tensors[name] = tensor

    def _asked(self, step: Step) -> Resized:
        assert isinstance(step.operator, Imported)
        options = step.operator.origin
        values = {
            position: value
            for position, name in enumerate(step.inputs)
            if name and (value := self._value(name)) is not None
        }
        return Resized(
            [self._tensors[name].shape if name else () for name in step.inputs],
            values,
            [self._tensors[name].shape for name in step.outputs],
            options if isinstance(options, Mapping) else {},
            step.operator.attributes,
        )

    def _value(self, name: str) -> Array | None:
        """Return the elements of integers that are known before the run."""
        tensor = self._tensors[name]
        if name in self._values or tensor.kind is not TensorKind.CONSTANT:
            return self._values.get(name)
        if tensor.dtype not in _INTEGERS or tensor.num_elements > MAX_VALUES:
            return None
        return self._program.constants.get(name)

    def _evaluate(self, step: Step, asked: Resized, shapes: list[Shape]) -> None:
        evaluate = VALUES.get(step.operator.label)
        is_known = all(position in asked.values for position in range(len(step.inputs)))
        is_small = all(math.prod(shape) <= MAX_VALUES for shape in shapes)
        if any(depends(each) for shape in shapes for each in shape):
            if step.operator.label == "RANGE" and is_known and is_small:
                start, end, delta = (asked.values[position] for position in range(3))
                if _are_plain([start, delta]):
                    front = _counted(start.item(), end.item(), delta.item())
                    self._fronts[step.outputs[0]] = front
            return
        if evaluate is not None and is_small and (is_known or step.operator.label == SHAPE):
            with np.errstate(all="raise"):
                found = evaluate(asked, list(asked.values.values()))
            self._values.update(zip(step.outputs, found, strict=True))
