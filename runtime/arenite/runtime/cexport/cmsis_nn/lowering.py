"""Leaves the steps that CMSIS-NN has kernels for to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from arenite.planner.dtypes import DType
from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.program import Program, Step
from arenite.planner.tensors import Tensor
from arenite.runtime.cexport.cmsis_nn import buffers
from arenite.runtime.cexport.cmsis_nn.extension import Extension
from arenite.runtime.cexport.compiler import LoweredForC
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.operators.pooling import Pool2D, PoolKind

_MOST = 1 << 15
"""Length of an axis that its kernels, which count some axes in 16 bits, are not handed."""


@dataclass(frozen=True, slots=True)
class ByCmsisNN(Operator):
    """An operator of ours that CMSIS-NN computes; nothing is promised of how.

    Attributes:
        operator: The operator.
        extension: Of the processor.
        buffer_bytes: Bytes of working memory.
    """

    repeatable: ClassVar[bool] = True

    operator: RuntimeOperator
    extension: Extension
    buffer_bytes: int = 0

    @property
    def label(self) -> str:
        """Name of the operator."""
        return self.operator.label

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of working memory."""
        return self.buffer_bytes

    def multiply_adds(self, operands: Operands) -> int:
        """Return those of the operator."""
        return self.operator.multiply_adds(operands)


def for_cmsis_nn(lowered: LoweredForC, extension: Extension) -> LoweredForC:
    """Return a lowered model, what CMSIS-NN has a kernel for left to it.

    Args:
        lowered: Steps for our own kernels.
        extension: Of the processor.
    """
    program = lowered.program
    steps = tuple(
        replace(step, operator=ByCmsisNN(operator, extension, found))
        if isinstance(operator := step.operator, RuntimeOperator)
        and (found := _buffer(program, lowered.shifted, step, extension)) is not None
        else step
        for step in program.steps
    )
    return replace(lowered, program=replace(program, steps=steps))


def extension_of(program: Program) -> Extension | None:
    """Return the kind of processor that a program is for, None if CMSIS-NN runs none of it."""
    operators = (step.operator for step in program.steps)
    return next((each.extension for each in operators if isinstance(each, ByCmsisNN)), None)


_Buffer: TypeAlias = Callable[[Program, Step, Tensor, Tensor, Extension], int | None]


def _buffer(
    program: Program, shifted: frozenset[str], step: Step, extension: Extension
) -> int | None:
    """Return the bytes of working memory of a step, None if CMSIS-NN has no kernel of it."""
    find = _KERNELS.get(type(step.operator))
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if find is None or source is None or result is None or len(step.outputs) > 1:
        return None
    if not (_is_quantised(source) and _is_quantised(result)):
        return None
    if max(source.shape + result.shape) >= _MOST or 0 in source.shape + result.shape:
        return None
    if isinstance(step.operator, Pool2D) and source.name in shifted:
        return None  # its averages would round halves of other numbers away from zero
    return find(program, step, source, result, extension)


def _is_quantised(tensor: Tensor) -> bool:
    stated = tensor.quantisation
    return tensor.dtype is DType.INT8 and stated is not None and len(stated.scales) == 1


def _filter(program: Program, step: Step) -> Tensor | None:
    """Return the weights if they are symmetric constants of bytes, and nothing is added."""
    if any(step.inputs[Conv2D.ADDEND :]) or len(step.inputs) < 2 or not step.inputs[1]:
        return None
    weights = program.tensors[step.inputs[1]]
    stated = weights.quantisation
    is_constant = program.root(weights.name)[0] in program.constants
    if not is_constant or weights.dtype is not DType.INT8 or stated is None or stated.zero_point:
        return None
    return weights if max(weights.shape) < _MOST else None


def _convolution(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    operator, weights = step.operator, _filter(program, step)
    if not isinstance(operator, Conv2D | DepthwiseConv2D) or weights is None:
        return None
    if any(len(each.shape) != 4 for each in (source, result, weights)):
        return None
    windows = buffers.Windows(
        source=source.shape, result=result.shape, kernel=(weights.shape[1], weights.shape[2]),
        strides=operator.strides, dilations=operator.dilations, padding=operator.padding,
        groups=operator.groups if isinstance(operator, Conv2D) else 1,
    )  # fmt: skip
    if isinstance(operator, DepthwiseConv2D) and source.shape[3] > 1:
        return buffers.depthwise(windows, extension)
    if windows.kernel == (1, 1) and any(windows.padding):
        return None  # its kernel of one pixel takes the image for as large as the result
    if windows.is_one_row and extension is Extension.MVE:
        # Its kernel of one row takes what the right lacks for half of all padding, or one more.
        wanted, top = windows.padding_of_row, windows.padding[0]
        if wanted < 0 or wanted // 2 != windows.padding[3] or top:
            return None
    return buffers.convolution(windows, extension)


def _fully_connected(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    weights = _filter(program, step)
    if weights is None or len(weights.shape) != 2:
        return None
    return buffers.fully_connected(weights.shape[0], extension)


def _pool(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    operator = step.operator
    assert isinstance(operator, Pool2D)
    if operator.dilations != (1, 1) or operator.count_padding:
        return None
    if source.quantisation != result.quantisation:
        return None
    is_average = operator.kind is PoolKind.AVERAGE
    return buffers.average_pool(source.shape[3], extension) if is_average else 0


def _binary(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    operator = step.operator
    assert isinstance(operator, Binary)
    other = program.tensors[step.inputs[1]]
    if operator.function not in (BinaryFunction.ADD, BinaryFunction.MULTIPLY):
        return None
    if not _is_quantised(other) or not source.shape == other.shape == result.shape:
        return None
    return 0


def _softmax(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    operator = step.operator
    assert isinstance(operator, Softmax)
    return None if operator.logarithm else 0


_KERNELS: Mapping[type[Operator], _Buffer] = {
    Conv2D: _convolution,
    DepthwiseConv2D: _convolution,
    FullyConnected: _fully_connected,
    Pool2D: _pool,
    Binary: _binary,
    Softmax: _softmax,
}
"""For each operator that CMSIS-NN has kernels of, what tells their working memory."""
