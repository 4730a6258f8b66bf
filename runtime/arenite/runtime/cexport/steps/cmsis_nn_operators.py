"""Leaves the steps that CMSIS-NN has kernels for to it."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from arenite.planner import DType, Program, Step, Tensor
from arenite.planner.operators import Operands, Operator
from arenite.planner.sizes import Expression, Sizes, highest_sizes, same_lengths
from arenite.planner.units import align_up
from arenite.runtime.cexport.base.options import Extension
from arenite.runtime.cexport.base.ranges import value_at
from arenite.runtime.operators.base import NO_PADDING, Pair, RuntimeOperator, Sides
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.operators.reduction import Pool2D, PoolKind

_INT16_BYTES = 2
_INT32_BYTES = 4
_LANES = 16
"""Bytes of a vector."""
_COLUMNS = 4
"""CmsisWindows that are multiplied at a time by vectors."""
_CHANNELS = 124
"""Channels of which the windows are multiplied at a time by vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CmsisWindows:
    """How the filter of a convolution slides.

    Attributes:
        source: Shape of the image: N, H, W, C.
        result: Shape of the result.
        kernel: Rows and columns of the filter.
        strides: Of rows and columns.
        dilations: Of rows and columns.
        padding: Top, right, bottom, left.
        groups: Of channels.
    """

    source: tuple[int, ...]
    result: tuple[int, ...]
    kernel: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    groups: int = 1

    @property
    def is_one_pixel(self) -> bool:
        """Whether each result is made of one pixel."""
        is_plain = self.kernel == self.dilations == (1, 1) and self.groups == 1
        return is_plain and not (self.padding[0] or self.padding[3])

    @property
    def is_one_row(self) -> bool:
        """Whether the filter slides over one row, in steps that vectors can take."""
        is_flat = self.source[1] == self.kernel[0] == self.dilations[1] == self.groups == 1
        return is_flat and self.strides[1] * self.source[3] % 4 == 0

    @property
    def padding_of_row(self) -> int:
        """Columns of padding that the windows of a row reach over; negative if they end early."""
        return (self.result[2] - 1) * self.strides[1] + self.kernel[1] - self.source[2]


def convolution_buffer(windows: CmsisWindows, extension: Extension) -> int:
    """Return the bytes of `arm_convolve_wrapper_s8`."""
    if windows.is_one_pixel:
        return 0
    if extension is Extension.MVE and windows.is_one_row:
        return _one_row(windows)
    return _window(windows, extension)


def _window(windows: CmsisWindows, extension: Extension) -> int:
    """Return the bytes of windows that are copied side by side."""
    length = windows.kernel[0] * windows.kernel[1] * windows.source[3]
    if extension is Extension.MVE:
        return _COLUMNS * align_up(length, _LANES)
    return 2 * align_up(length, 4) * _INT16_BYTES


def _one_row(windows: CmsisWindows) -> int:
    """Return the bytes of the windows at the ends of a row, with their padding."""
    columns, stride, depth = windows.kernel[1], windows.strides[1], windows.source[3]
    left, odd = windows.padding[3], windows.padding_of_row % 2
    before, after = _padded(left, stride), _padded(left + odd, stride)
    if before + after > windows.result[2]:
        return _window(windows, Extension.MVE)
    end = after * depth if odd else left * depth
    return max(columns * depth + left * depth, (columns - 1) * depth + end)


def _padded(columns: int, stride: int) -> int:
    """Return the number of windows that reach into so many columns of padding."""
    return -(-columns // stride)


def depthwise_buffer(windows: CmsisWindows, extension: Extension) -> int:
    """Return the bytes of `arm_depthwise_conv_wrapper_s8`, for images of several channels."""
    source, result, kernel = windows.source, windows.result, windows.kernel
    if source[3] != result[3] or source[0] != 1 or windows.dilations != (1, 1):
        return 0
    if extension is Extension.MVE:
        return 4 * _CHANNELS * kernel[0] * kernel[1]
    has_own_kernel = kernel == (3, 3) and windows.padding[0] <= 1 and windows.padding[3] <= 1
    if has_own_kernel or extension is Extension.NONE:
        return 0
    return source[3] * kernel[0] * kernel[1] * _INT16_BYTES


def fully_connected_buffer(outputs: int, extension: Extension) -> int:
    """Return the bytes of `arm_fully_connected_wrapper_s8`: a sum of weights an output."""
    return outputs * _INT32_BYTES if extension is Extension.MVE else 0


def average_pool_buffer(depth: int, extension: Extension) -> int:
    """Return the bytes of `arm_avgpool_s8`: a sum a channel."""
    return depth * _INT32_BYTES if extension is Extension.DSP else 0


_MOST = 1 << 15
"""Length of an axis that its kernels, which count some axes in 16 bits, are not handed."""


@dataclass(frozen=True, slots=True)
class ByCmsisNN(Operator):
    """An operator of ours that CMSIS-NN computes; nothing is promised of how.

    Attributes:
        extension: Of the processor.
        buffer_bytes: Bytes of working memory.
    """

    repeatable: ClassVar[bool] = True

    operator: RuntimeOperator
    extension: Extension
    buffer_bytes: int = 0

    @property
    def label(self) -> str:
        return self.operator.label

    @property
    def computes_as(self) -> type[Operator]:
        return self.operator.computes_as

    def scratch(self, operands: Operands) -> int:
        return self.buffer_bytes

    def multiply_adds(self, operands: Operands) -> int:
        return self.operator.multiply_adds(operands)


def for_cmsis_nn(program: Program, shifted: frozenset[str], extension: Extension) -> Program:
    """Return a program whose steps CMSIS-NN computes where it has kernels for them.

    Args:
        program: Steps for our own kernels.
        shifted: Tensors of unsigned bytes in the model, stored less 128.
        extension: Instructions of the processor.
    """
    steps = tuple(
        replace(step, operator=ByCmsisNN(operator, extension, found))
        if isinstance(operator := step.operator, RuntimeOperator)
        and (found := _buffer(program, shifted, step, extension)) is not None
        else step
        for step in program.steps
    )
    return replace(program, steps=steps)


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
    if isinstance(step.operator, Pool2D) and source.name in shifted:
        return None  # its averages would round halves of other numbers away from zero
    found: list[int] = []
    for sizes in _all_sizes(program, (*source.shape, *result.shape)):
        own = replace(step, operator=value_at(step.operator, sizes))
        one, other = (
            replace(each, shape=value_at(each.shape, sizes)) for each in (source, result)
        )
        if max(one.shape + other.shape) >= _MOST or 0 in one.shape + other.shape:
            return None
        needed = find(program, own, one, other, extension)
        if needed is None:
            return None
        found.append(needed)
    return max(found, default=None)


_MOST_SIZES = 4096
"""Combinations of sizes that the working memory of a step is found for."""


def _all_sizes(program: Program, lengths: tuple[int, ...]) -> Iterator[Sizes]:
    """Yield all sizes that lengths depend on; none if there are too many."""
    names = frozenset().union(*(Expression.of(each).names for each in lengths))
    dimensions = [each for each in program.dimensions if each.name in names]
    if math.prod(map(len, dimensions)) > _MOST_SIZES:
        return
    names_in_order = [each.name for each in dimensions]
    for values in itertools.product(*(each.values for each in dimensions)):
        yield highest_sizes(program.dimensions) | dict(zip(names_in_order, values, strict=True))


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
    windows = CmsisWindows(
        source=source.shape, result=result.shape, kernel=(weights.shape[1], weights.shape[2]),
        strides=operator.strides, dilations=operator.dilations, padding=operator.padding,
        groups=operator.groups if isinstance(operator, Conv2D) else 1,
    )  # fmt: skip
    if isinstance(operator, DepthwiseConv2D) and source.shape[3] > 1:
        return depthwise_buffer(windows, extension)
    if windows.kernel == (1, 1) and any(windows.padding):
        return None  # its kernel of one pixel takes the image for as large as the result
    if windows.is_one_row and extension is Extension.MVE:
        # Its kernel of one row takes what the right lacks for half of all padding, or one more.
        wanted, top = windows.padding_of_row, windows.padding[0]
        if wanted < 0 or wanted // 2 != windows.padding[3] or top:
            return None
    return convolution_buffer(windows, extension)


def _fully_connected(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    weights = _filter(program, step)
    if weights is None or len(weights.shape) != 2:
        return None
    return fully_connected_buffer(weights.shape[0], extension)


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
    return average_pool_buffer(source.shape[3], extension) if is_average else 0


def _binary(
    program: Program, step: Step, source: Tensor, result: Tensor, extension: Extension
) -> int | None:
    operator = step.operator
    assert isinstance(operator, Binary)
    if operator.function not in (BinaryFunction.ADD, BinaryFunction.MULTIPLY):
        return None
    one, other, made = (program.tensors[name] for name in (*step.inputs[:2], step.outputs[0]))
    shapes_agree = all(same_lengths(each.shape, made.shape) for each in (one, other))
    if not _is_quantised(other) or not shapes_agree:
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
