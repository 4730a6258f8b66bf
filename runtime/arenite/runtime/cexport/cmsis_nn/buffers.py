"""Bytes of working memory that CMSIS-NN's kernels need.

They are those of its own functions arm_..._get_buffer_size, of a build with GCC or Clang.
Armclang's build for the DSP extension uses more for convolutions of one pixel if it is given more;
it is given none, which it allows.

Source: CMSIS-NN 7.0.0, arm_convolve_get_buffer_sizes_s8.c,
arm_depthwise_conv_get_buffer_sizes_s8.c, arm_fully_connected_get_buffer_sizes_s8.c,
arm_avgpool_get_buffer_sizes_s8.c.
"""

from dataclasses import dataclass

from arenite.planner.units import align_up
from arenite.runtime.cexport.cmsis_nn.extension import Extension
from arenite.runtime.operators.base import NO_PADDING, Pair, Sides

_INT16_BYTES = 2
_INT32_BYTES = 4
_LANES = 16
"""Bytes of a vector."""
_COLUMNS = 4
"""Windows that are multiplied at a time by vectors."""
_CHANNELS = 124
"""Channels of which the windows are multiplied at a time by vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
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


def convolution(windows: Windows, extension: Extension) -> int:
    """Return the bytes of `arm_convolve_wrapper_s8`."""
    if windows.is_one_pixel:
        return 0
    if extension is Extension.MVE and windows.is_one_row:
        return _one_row(windows)
    return _window(windows, extension)


def _window(windows: Windows, extension: Extension) -> int:
    """Return the bytes of windows that are copied side by side."""
    length = windows.kernel[0] * windows.kernel[1] * windows.source[3]
    if extension is Extension.MVE:
        return _COLUMNS * align_up(length, _LANES)
    return 2 * align_up(length, 4) * _INT16_BYTES


def _one_row(windows: Windows) -> int:
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


def depthwise(windows: Windows, extension: Extension) -> int:
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


def fully_connected(outputs: int, extension: Extension) -> int:
    """Return the bytes of `arm_fully_connected_wrapper_s8`: a sum of weights an output."""
    return outputs * _INT32_BYTES if extension is Extension.MVE else 0


def average_pool(depth: int, extension: Extension) -> int:
    """Return the bytes of `arm_avgpool_s8`: a sum a channel."""
    return depth * _INT32_BYTES if extension is Extension.DSP else 0
