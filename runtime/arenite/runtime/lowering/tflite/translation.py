"""One step of a TFLite model, for its translator."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import DType, Step
from arenite.planner.importers.tflite import Options
from arenite.planner.operators import AutoPad, Imported, Window, num_positions
from arenite.planner.sizes import largest
from arenite.runtime.lowering.errors import NotLoweredError, unsupported
from arenite.runtime.lowering.layout import Order, Shape, StoredValue, as_written
from arenite.runtime.lowering.translation import StepTranslation, Translators, fold_clamp
from arenite.runtime.operators.base import Clamped, Pair, RuntimeOperator, Sides
from arenite.runtime.operators.elementwise import Convert, Unary, UnaryFunction

NONE, RELU, RELU_N1_TO_1, RELU6, TANH = range(5)
_CLAMPS = {RELU: (0.0, math.inf), RELU_N1_TO_1: (-1.0, 1.0), RELU6: (0.0, 6.0)}
_SAME = 0
VALID = 1


@dataclass(frozen=True, slots=True)
class TfliteTranslation(StepTranslation):
    """A step of a TFLite model to translate, and its context.

    Attributes:
        options: Its options in the file.
    """

    options: Options

    def source(self, position: int = 0) -> str:
        """Return the name of an input.

        Raises:
            NotLoweredError: The operator has fewer.
        """
        if position >= len(self.step.inputs):
            raise NotLoweredError(f"input {position} is missing")
        return self.step.inputs[position]

    def value(self, position: int = 0) -> StoredValue:
        """Return an input, stored as the model has it."""
        return self.builder.as_written(self.stored(position), self.target)

    def stored(self, position: int = 0) -> StoredValue:
        """Return an input, stored in any order of its axes."""
        return self.builder.value(self.source(position))

    def optional_value(self, position: int) -> StoredValue | None:
        """Return an input that may be left out."""
        return self.value(position) if self.has(position) else None

    def weights(self, position: int, output_axis: int | None = None) -> StoredValue:
        """Return an input that must be constant, dequantised if the operator computes in floats.

        Converters that quantise only weights expect the kernel to handle the mix.

        Args:
            position: Of the input.
            output_axis: Axis of the outputs in a filter, which may stay as bytes beside floats
                where the program has such layers; None if it may not.
        """
        array, value = self.array(position), self.value(position)
        stated = self.builder.stated_quantisation(self.source(position))
        if self.dtype is not DType.FLOAT32 or stated is None or array.dtype == np.float32:
            return value
        if output_axis is not None and self.builder.keeps_bytes:
            is_per_output = (
                stated.axis == output_axis and len(stated.scales) == (array.shape[output_axis])
            )
            is_plain = array.dtype == np.int8 and not stated.zero_point
            if is_plain and (is_per_output or len(stated.scales) == 1):
                return value
        shape = [1] * array.ndim
        if len(stated.scales) > 1:
            shape[stated.axis] = -1
        scales = np.array(stated.scales, np.float32).reshape(shape if array.ndim else ())
        numbers = (array.astype(np.float32) - np.float32(stated.zero_point)) * scales
        return self.builder.constant(numbers, f"{self.source(position)}/numbers")

    def integers(self, position: int) -> tuple[int, ...]:
        """Return the elements of a constant input of integers."""
        return tuple(int(each) for each in self.array(position).reshape(-1))

    @property
    def numpy_dtype(self) -> np.dtype[np.generic]:
        """Type of the first output, as numpy has it.

        Raises:
            NotLoweredError: numpy has no such type.
        """
        try:
            return np.dtype(self.dtype.label)
        except TypeError:
            raise NotLoweredError(f"element type {self.dtype.label} is unsupported") from None

    @property
    def is_quantised(self) -> bool:
        """Whether the first output is quantised."""
        return self.builder.stated_quantisation(self.target) is not None

    def integer(self, name: str, default: int) -> int:
        value = self.options.get(name, default)
        return int(value) if isinstance(value, int | bool) else default

    def number(self, name: str, default: float) -> float:
        value = self.options.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def pair(self, height: str, width: str) -> Pair:
        """Return two options that belong together."""
        return self.integer(height, 1), self.integer(width, 1)

    def padding(
        self, size: tuple[int, ...], kernel: Pair, strides: Pair, dilations: Pair
    ) -> Sides:
        """Return the padding of a window: none, or the one that gives the stated output size."""
        stated = self.options.get("Padding")
        if isinstance(stated, tuple):
            top, right, bottom, left = stated
            return top, right, bottom, left
        if self.integer("Padding", _SAME) != _SAME:
            return (0, 0, 0, 0)
        begins, ends = [], []
        for axis in range(2):
            taps = kernel[axis], strides[axis], dilations[axis]
            count = num_positions(size[axis], *taps, AutoPad.SAME_UPPER)
            window = Window.padded(size[axis], count, *taps, AutoPad.SAME_UPPER)
            begins.append(window.before)
            ends.append(largest(0, window.after))
        return begins[0], ends[1], ends[0], begins[1]

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        *,
        shape: Shape | None = None,
        order: Order | None = None,
    ) -> StoredValue:
        """Add the step that makes the first output, its fused activation included.

        By default the output is stored as written.
        """
        shape = self.shape if shape is None else shape
        activation = self.integer("FusedActivationFunction", NONE)
        if activation in _CLAMPS and isinstance(operator, Clamped):
            low, high = _CLAMPS[activation]
            operator = replace(operator, min=low, max=high)
            activation = NONE
        name = self.target if activation == NONE else f"{self.target}/linear"
        result = self.builder.emit_one(
            operator, inputs, name, shape, order, dtype=self.dtype, step=self.step.name,
            quantisation=self.builder.stated_quantisation(self.target),
        )  # fmt: skip
        return result if activation == NONE else self._activated(result, activation)

    def _activated(self, value: StoredValue, activation: int) -> StoredValue:
        if activation == TANH:
            operator = Unary(function=UnaryFunction.HYPERBOLIC_TANGENT)
        elif activation in _CLAMPS:
            low, high = _CLAMPS[activation]
            operator = Unary(function=UnaryFunction.CLAMP, alpha=low, beta=high)
        else:
            raise unsupported("fused_activation_function", activation, *_CLAMPS, TANH)
        return self.builder.emit_one(
            operator, [value], self.target, value.shape, value.order,
            quantisation=self.builder.stated_quantisation(self.target),
        )  # fmt: skip

    def emit_all(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        outputs: Sequence[tuple[str, Shape]],
        dtype: DType | Sequence[DType],
    ) -> None:
        """Add the step that makes several outputs of the model, whose shapes are those given."""
        for name, shape in outputs:
            self.builder.restate_shape(name, shape)
        made = self.builder.emit(
            operator, inputs, [(name, shape, as_written(len(shape))) for name, shape in outputs],
            dtype=dtype, step=self.step.name,
        )  # fmt: skip
        for (name, _), value in zip(outputs, made, strict=True):
            self.builder.bind(name, value)

    def clamp(self, low: float, high: float) -> None:
        """Clamp the input, within the step that makes it if possible."""
        if fold_clamp(self.builder, self.source(), self.target, low, high):
            return
        operator = Unary(function=UnaryFunction.CLAMP, alpha=low, beta=high)
        self.of_elements(operator)

    def of_elements(self, operator: RuntimeOperator) -> None:
        """Make the first output of the elements of the first input, in whatever order."""
        value = self.stored()
        self.finish(self.emit(operator, [value], shape=value.shape, order=value.order))

    def is_complex(self, name: str) -> bool:
        """Tell whether a tensor of the model is of complex numbers."""
        return self.builder.model.tensors[name].dtype in (DType.COMPLEX64, DType.COMPLEX128)

    def finish(self, value: StoredValue) -> None:
        """Bind the first output to this value, under its own shape; complex numbers are pairs."""
        shape = (*self.shape, 2) if self.is_complex(self.target) else self.shape
        if not self.builder.agree(value.shape, shape):
            value = self.builder.reshaped(value, shape, self.target)
        self.builder.bind(self.target, replace(value, shape=shape))


def options_of(step: Step) -> Options:
    """Return the options of a step's operator, by the schema's names."""
    origin = step.operator.origin if isinstance(step.operator, Imported) else None
    return origin if isinstance(origin, Mapping) else {}


TRANSLATORS = Translators[TfliteTranslation]()
translates = TRANSLATORS.translates


def as_numbers(t: TfliteTranslation, value: StoredValue) -> StoredValue:
    """Return the value as 32-bit floats, with a step that converts it if needed."""
    if value.dtype is DType.FLOAT32:
        return value
    return t.builder.emit_one(
        Convert(), [value], f"{t.target}/numbers", value.shape, value.order, dtype=DType.FLOAT32
    )


def through_numbers(
    t: TfliteTranslation, operator: RuntimeOperator, values: Sequence[StoredValue]
) -> None:
    """Make the first output by an operator on floats, for operands of any type."""
    numbers = [as_numbers(t, value) for value in values]
    if t.dtype is DType.FLOAT32:
        t.finish(t.emit(operator, numbers))
        return
    made = t.builder.emit_one(operator, numbers, f"{t.target}/made", t.shape, dtype=DType.FLOAT32)
    t.finish(t.emit(Convert(), [made]))
