"""Give inputs of a TFLite model other shapes, where its signature leaves them open.

The file has the sizes of all tensors for one shape of its inputs. What depends on a resized input
is inferred anew, operator by operator; all else keeps the shape in the file.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.errors import BindingError
from arenite.planner.importers.tflite.shapes import (
    SHAPES,
    VALUES,
    MisfitError,
    Resized,
    Shape,
)
from arenite.planner.operators.imported import Imported
from arenite.planner.program import Array, Program, Step
from arenite.planner.tensors import TensorKind

_MOST_ELEMENTS = 65_536
_MOST_BYTES = 2**62
_INTEGERS = (DType.INT32, DType.INT64)


def resized(program: Program, shapes: Mapping[str, Shape]) -> Program:
    """Return the program with inputs of other shapes.

    Args:
        program: The program, read with its constants and the options of its operators.
        shapes: New shapes of inputs, by name.

    Raises:
        BindingError: An operator does not take them, or is not known to pass them on.

    Cost: O(operands of the steps).
    """
    return _Resizing(program, shapes).program()


class _Resizing:
    def __init__(self, program: Program, shapes: Mapping[str, Shape]) -> None:
        self._program = program
        self._input = ", ".join(shapes)
        self._tensors = {
            name: replace(tensor, shape=shapes.get(name, tensor.shape))
            for name, tensor in program.tensors.items()
        }
        self._values: dict[str, Array] = {}

    def program(self) -> Program:
        for step in self._program.steps:
            if any(self._is_new(name) for name in step.reads):
                self._resize(step)
        return replace(self._program, tensors=self._tensors)

    def _is_new(self, name: str) -> bool:
        shape = self._program.tensors[name].shape
        return name in self._values or self._tensors[name].shape != shape

    def _resize(self, step: Step) -> None:
        assert isinstance(step.operator, Imported)
        infer = SHAPES.get(step.operator.label)
        try:
            if infer is None:
                raise MisfitError("it is not known what shape it gives its outputs")
            asked = self._asked(step)
            found = infer(asked)
            if len(found) != len(step.outputs):
                raise MisfitError(f"it has {len(step.outputs)} outputs, not {len(found)}")
            self._evaluate(step, asked)
        except MisfitError as reason:
            raise BindingError(
                self._input, f"cannot have this shape: {step.name}: {reason}"
            ) from reason
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            raise BindingError(
                self._input, f"cannot have this shape: {step.name}: its operands do not fit"
            ) from error
        for name, shape in zip(step.outputs, found, strict=True):
            tensor = replace(self._tensors[name], shape=tuple(map(int, shape)))
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
        if tensor.dtype not in _INTEGERS or tensor.num_elements > _MOST_ELEMENTS:
            return None
        return self._program.constants.get(name)

    def _evaluate(self, step: Step, asked: Resized) -> None:
        if step.operator.label == "SHAPE":
            self._values[step.outputs[0]] = np.array(asked.source, np.int64)
            return
        evaluate = VALUES.get(step.operator.label)
        is_known = all(position in asked.values for position in range(len(step.inputs)))
        if evaluate is not None and is_known:
            self._values[step.outputs[0]] = evaluate(asked, list(asked.values.values()))
