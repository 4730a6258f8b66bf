"""Layers of floats whose weights are bytes as steps of our runtime, a reference of their C."""

import math
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Operator
from arenite.planner.programs import Names
from arenite.runtime.cexport.steps.hybrid import QuantiseRows, multiplies_in_turn
from arenite.runtime.operators.convolution import Convolution
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Select,
    Unary,
    UnaryFunction,
)
from arenite.runtime.operators.reduction import Reduce, ReduceFunction
from arenite.runtime.rewrites.fusing import without_unread

_SCALES = Convolution.SCALES


def in_floats(program: Program) -> Program:
    """Return a program that our runtime runs, with the same numbers as that of the C kernels.

    Bytes are floats without a fraction here, so their sums are exact up to 2^24.

    Args:
        program: Steps of our own operators and steps that round what some of them read.
    """
    found = _Floats(program)
    for step in program.steps:
        if isinstance(step.operator, QuantiseRows):
            found.round(step, step.operator)
        elif (
            isinstance(step.operator, Convolution)
            and len(step.inputs) > _SCALES
            and (step.inputs[_SCALES] in found.scales)
        ):
            found.multiply(step, step.operator)
        else:
            found.steps.append(step)
    return without_unread(
        replace(
            program, tensors=found.tensors, constants=found.constants, steps=tuple(found.steps)
        )
    )


F, B = UnaryFunction, BinaryFunction
_TINY = 1e-35
"""Takes the place of a range of 0, by which nothing can be divided."""


class _Floats:
    """The steps of a program, operands and weights of bytes being floats."""

    def __init__(self, program: Program) -> None:
        self.tensors = dict(program.tensors)
        self.constants = dict(program.constants)
        self.steps: list[Step] = []
        self.scales: dict[str, str] = {}
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])

    def round(self, step: Step, operator: QuantiseRows) -> None:
        """Add what rounds rows, and makes their scales."""
        source, (rounded, scales) = step.inputs[0], step.outputs
        shape = self.tensors[source].shape
        kept = 1 if operator.rows == shape[0] else len(shape) - 1
        axes = tuple(range(kept, len(shape)))
        zero = None
        if operator.is_symmetric:
            largest = self._reduced(ReduceFunction.MAXIMUM, self._unary(F.ABSOLUTE, source), axes)
            largest = self._binary(B.MAXIMUM, largest, _TINY)
            scale = self._binary(B.DIVIDE, largest, 127.0)
            factor = self._binary(B.DIVIDE, 127.0, largest)
            steps = self._binary(B.MULTIPLY, source, factor)
        else:
            high = self._reduced(ReduceFunction.MAXIMUM, source, axes)
            low = self._reduced(ReduceFunction.MINIMUM, source, axes)
            high, low = self._binary(B.MAXIMUM, high, 0.0), self._binary(B.MINIMUM, low, 0.0)
            span = self._binary(B.MAXIMUM, self._binary(B.SUBTRACT, high, low), _TINY)
            scale = self._binary(B.DIVIDE, span, 255.0)
            zero = self._zero_point(
                self._binary(B.DIVIDE, low, scale), self._binary(B.DIVIDE, high, scale)
            )
            factor = self._binary(B.DIVIDE, 1.0, scale)
            steps = self._binary(B.ADD, self._binary(B.MULTIPLY, source, factor), zero)
        lowest = -127.0 if operator.is_symmetric else -128.0
        whole = self._clamped(self._rounded(steps), lowest, 127.0)
        self.scales[scales] = scale
        self.tensors[rounded] = replace(self.tensors[rounded], dtype=DType.FLOAT32)
        self._add(
            Binary(function=B.SUBTRACT),
            (whole, zero or self._constant(np.zeros(1, np.float32))),
            shape,
            rounded,
        )

    def multiply(self, step: Step, operator: Convolution) -> None:
        """Add what multiplies floats without a fraction, and what makes numbers of the sums."""
        rounded, weights, bias, *_ = step.inputs
        result, filter_ = step.outputs[0], self.tensors[weights]
        assert filter_.quantisation is not None
        own = self._constant(np.array(filter_.quantisation.scales, np.float32))
        scale = self.scales[step.inputs[_SCALES]]
        plain = replace(operator, min=-math.inf, max=math.inf)
        whole = self._constant(self.constants[weights].astype(np.float32))
        sums = self._add(plain, (rounded, whole), self.tensors[result].shape)
        if multiplies_in_turn(operator, filter_):
            numbers = self._binary(B.MULTIPLY, self._binary(B.MULTIPLY, sums, own), scale)
        else:
            numbers = self._binary(B.MULTIPLY, sums, self._binary(B.MULTIPLY, own, scale))
        added = bias or self._constant(np.zeros(1, np.float32))
        last = Binary(function=B.ADD, min=operator.min, max=operator.max)
        self._add(last, (numbers, added), self.tensors[result].shape, result)

    def _zero_point(self, least: str, largest: str) -> str:
        ends = self._binary(B.SUBTRACT, 128.0, least), self._binary(B.ADD, 127.0, largest)
        shape = self.tensors[least].shape
        is_least = self._add(Binary(function=B.LESS), ends, shape, dtype=DType.BOOL)
        values = self._binary(B.SUBTRACT, -128.0, least), self._binary(B.SUBTRACT, 127.0, largest)
        found = self._add(Select(), (is_least, *values), shape)
        return self._rounded(self._clamped(found, -128.0, 127.0))

    def _rounded(self, value: str) -> str:
        """Return the nearest integers, halves away from 0."""
        size = self._unary(F.FLOOR, self._binary(B.ADD, self._unary(F.ABSOLUTE, value), 0.5))
        return self._binary(B.MULTIPLY, size, self._unary(F.SIGN, value))

    def _clamped(self, value: str, low: float, high: float) -> str:
        operator = Unary(function=F.CLAMP, alpha=low, beta=high)
        return self._add(operator, (value,), self.tensors[value].shape)

    def _unary(self, function: UnaryFunction, value: str) -> str:
        return self._add(Unary(function=function), (value,), self.tensors[value].shape)

    def _binary(self, function: BinaryFunction, *values: str | float) -> str:
        names = tuple(
            each if isinstance(each, str) else self._constant(np.array([each], np.float32))
            for each in values
        )
        shape = np.broadcast_shapes(*(self.tensors[each].shape for each in names))
        return self._add(Binary(function=function), names, shape)

    def _reduced(self, function: ReduceFunction, value: str, axes: tuple[int, ...]) -> str:
        whole = self.tensors[value].shape
        shape = tuple(1 if axis in axes else length for axis, length in enumerate(whole))
        return self._add(Reduce(function=function, axes=axes), (value,), shape)

    def _constant(self, array: Array) -> str:
        name = self._names.take("numbers")
        self.constants[name] = array
        dtype = DType.of_label(array.dtype.name)
        self.tensors[name] = Tensor(name, dtype, array.shape, TensorKind.CONSTANT)
        return name

    def _add(
        self,
        operator: Operator,
        inputs: tuple[str, ...],
        shape: tuple[int, ...],
        name: str = "",
        dtype: DType = DType.FLOAT32,
    ) -> str:
        if not name:
            name = self._names.take("rounding")
            self.tensors[name] = Tensor(name, dtype, shape, TensorKind.ACTIVATION)
        self.steps.append(Step(self._names.take(f"{name}/step"), operator, inputs, (name,)))
        return name
