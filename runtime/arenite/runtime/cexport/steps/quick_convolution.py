"""Convolutions of bytes by the quick kernels: which they make, and what they are handed.

The quick kernels add the products as they are, double the sum with its bias, and scale it by a
factor and a shift to the right. An output whose results are all alike becomes a bias alone: in
trained networks many are, and these have the extreme biases and shifts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import Array
from arenite.runtime.cexport.base.fixed_point import requantised
from arenite.runtime.cexport.base.options import Rounding
from arenite.runtime.cexport.base.orders import MVE, RVV, Orders
from arenite.runtime.cexport.steps.packing import (
    BLOCKS_OF_MVE,
    HIGHEST_INPUT,
    fits_pairs,
    in_channels,
    in_lanes,
    in_pairs,
    scales_of_mve,
)

_GATHERED = 24
"""Most inputs of a row of a window that the kernel gathers at a border of the image."""
_MOST_ROWS = 8
"""Most rows of a depthwise window."""
_LEAST_WEIGHT = -128
_ALIKE = (1 << 30, -1)
"""Factor and shift by which a sum is divided by 4."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """What turns inputs into results, a value an output.

    Attributes:
        weights: Not packed; int8.
        bias: With what the source's zero point adds to the sum of a whole window; int32.
        factors: One an output or one for all; floats where halves are rounded to even;
            none if they are beside the biases.
        shifts: Likewise.
        zero: Stands for 0 in the result.
        low: Least result.
        high: Largest result.
        rounding: How products of integers are rounded.
        orders: Weights, bias and shifts as instruction sets read them that read other orders.
    """

    weights: Array
    bias: Array
    factors: Array
    shifts: Array
    zero: int
    low: int
    high: int
    rounding: Rounding
    orders: tuple[Orders, Orders, Orders] = ({}, {}, {})


def quick(
    kernel: str, geometry: Mapping[str, int], quantities: Quantities
) -> tuple[str, Quantities] | None:
    """Return the name of a quick kernel and what it is handed; None if there is none.

    Args:
        kernel: Name of the general kernel.
        geometry: Of the layer.
        quantities: Its weights of `depthwise` are rows, columns, outputs, of others outputs, rows,
            columns, inputs.
    """
    is_depthwise = kernel == "depthwise"
    if is_depthwise:
        is_made = (
            geometry["depth"] == geometry["out_depth"] and geometry["depth"] % 4 == 0
            and geometry["kernel_y"] <= _MOST_ROWS
        )  # fmt: skip
    else:
        is_made = kernel in ("conv", "pointwise") and _is_in_runs(geometry)
    if not is_made:
        return None
    axis = -1 if is_depthwise else 0
    found = _settled(quantities, axis)
    most = np.abs(found.bias.astype(np.int64)) + _reach(found.weights, axis)
    if 2 * most.max() >= 2**31 or (found.rounding != "even" and found.shifts.max() >= 0):
        return None
    if is_depthwise:
        # Vectors add two products in 16 bits; without signs, 32 bits hold 256 times a sum.
        if found.weights.min() == _LEAST_WEIGHT or 256 * _reach(found.weights, -1).max() >= 2**31:
            return None
        packed = in_channels(found.weights, 4)
        orders: Orders = {
            MVE: in_channels(found.weights, *BLOCKS_OF_MVE), RVV: found.weights.reshape(-1),
        }  # fmt: skip
    elif fits_pairs(found.weights):
        packed, orders = in_pairs(found.weights)
    else:
        return None
    count = len(found.bias)
    factors = np.broadcast_to(found.factors, (count,)).view(np.int32)
    shifts = np.broadcast_to(found.shifts, (count,))
    scales = np.stack([found.bias, factors], axis=1)
    scales_of = {MVE: scales_of_mve(scales, is_depthwise=is_depthwise), RVV: scales.T}
    handed = replace(
        found, weights=packed, bias=np.stack([2 * found.bias, factors], axis=1),
        factors=np.zeros(0, np.int32), shifts=~shifts,
        orders=(
            orders, scales_of, {MVE: shifts[in_lanes(count)] if is_depthwise else shifts},
        ),
    )  # fmt: skip
    return f"{kernel}_{'fours' if is_depthwise else 'pairs'}", handed


def _is_in_runs(geometry: Mapping[str, int]) -> bool:
    """Tell whether the inputs of each row of a window lie side by side, few of them at borders."""
    depth, window = geometry["depth"], (geometry["kernel_y"], geometry["kernel_x"])
    is_gathered = depth % 4 != 0 and window != (1, 1)
    return (
        geometry["groups"] == geometry["dilation_x"] == 1
        and not (is_gathered and depth * window[1] > _GATHERED)
    )  # fmt: skip


def _reach(weights: Array, axis: int) -> Array:
    """Return how far the products of each output may move its sum."""
    by_output = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    reach: Array = HIGHEST_INPUT * np.abs(by_output.astype(np.int64)).sum(axis=1)
    return reach


def _settled(given: Quantities, axis: int) -> Quantities:
    """Return the quantities with outputs whose results are all alike as biases alone."""
    if given.rounding == "even" or len(given.factors) != len(given.bias):
        return given
    weights, bias, factors, shifts = (
        each.copy() for each in (given.weights, given.bias, given.factors, given.shifts)
    )
    by_output = np.moveaxis(weights, axis, 0)
    reach = _reach(weights, axis)
    for output, (middle, factor, shift) in enumerate(zip(bias, factors, shifts, strict=True)):
        ends = int(middle) - int(reach[output]), int(middle) + int(reach[output])
        if shift > 0 or ends[0] < -(2**31) or ends[1] >= 2**31:
            continue
        results = [
            requantised(end, int(factor), int(shift), single_rounding=given.rounding == "single")
            for end in ends
        ]
        least, most = (min(max(each + given.zero, given.low), given.high) for each in results)
        if least == most:
            by_output[output] = 0
            bias[output] = 4 * (least - given.zero)
            factors[output], shifts[output] = _ALIKE
    return replace(given, weights=weights, bias=bias, factors=factors, shifts=shifts)
