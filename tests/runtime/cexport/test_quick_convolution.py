"""Which convolutions the quick kernels make; their packed weights are those of the model."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from arenite.planner import Array
from arenite.runtime.cexport.base.orders import MVE, RVV
from arenite.runtime.cexport.steps.packing import (
    by_inputs,
    fits_pairs,
    in_channels,
    in_lanes,
    in_mve_vectors,
    pairs,
    scales_of_mve,
)
from arenite.runtime.cexport.steps.quick_convolution import Quantities, quick

GEOMETRY = {
    "depth": 6, "out_depth": 5, "groups": 1, "kernel_y": 1, "kernel_x": 1, "dilation_x": 1,
}  # fmt: skip
INT8 = np.iinfo(np.int8)


def quantities(weights: Array) -> Quantities:
    outputs = len(weights)
    return Quantities(
        weights, np.arange(outputs, dtype=np.int32), np.full(outputs, 2**30, np.int32),
        np.full(outputs, -8, np.int8), 3, -128, 127, "double",
    )  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-127, 127, shape, np.int8, endpoint=True)


def unpacked(packed: Array, shape: tuple[int, ...]) -> Array:
    """Return the weights in the order in which a model has them, one number after another."""
    outputs, rows, columns, inputs = shape
    run, numbers = columns * inputs, iter(packed.tolist())
    found = np.zeros((outputs + outputs % 2, rows, run), int)
    for first in range(0, len(found), 8):
        places = range(first, min(first + 8, len(found)), 2)
        for row in range(rows):
            for start in range(0, run - run % 4, 4):
                for place in places:
                    for each in (start, start + 2, start + 1, start + 3):
                        found[place : place + 2, row, each] = apart(numbers)
            for place in places:
                for each in range(run - run % 4, run):
                    found[place : place + 2, row, each] = apart(numbers)
    assert not list(numbers)
    return found[:outputs].reshape(shape)


def apart(numbers: Iterator[int]) -> tuple[int, int]:
    lane = next(numbers)
    one = (lane + 128) % 256 - 128
    return one, (lane - one) // 256


@pytest.mark.parametrize("shape", [(5, 1, 1, 6), (16, 3, 3, 4), (23, 2, 5, 3), (2, 1, 1, 1)])
def test_every_weight_is_in_its_pair(shape: tuple[int, ...]) -> None:
    weights = drawn(*shape)
    np.testing.assert_array_equal(unpacked(pairs(weights), shape), weights)


def test_for_vectors_every_weight_is_where_the_model_has_it() -> None:
    weights = drawn(5, 2, 3, 4)
    found = in_mve_vectors(weights)
    assert found.nbytes == pairs(weights).nbytes
    np.testing.assert_array_equal(found.view(np.int8)[: weights.size], weights.reshape(-1))
    whole = drawn(7, 2, 3, 32)
    found = in_mve_vectors(whole).view(np.int8)
    fours = found[: 4 * whole[0].size].reshape(2, 3, 2, 4, 16)
    np.testing.assert_array_equal(fours[1, 2, 1, 3], whole[3, 1, 2, 16:])
    left = found[4 * whole[0].size : whole.size]
    np.testing.assert_array_equal(left, whole[4:].reshape(-1))
    by_channel = drawn(3, 3, 28)
    blocks = in_channels(by_channel, 16, 8, 4)
    np.testing.assert_array_equal(blocks[:144].reshape(3, 3, 16), by_channel[..., :16])
    np.testing.assert_array_equal(blocks[144:216].reshape(3, 3, 8), by_channel[..., 16:24])
    np.testing.assert_array_equal(blocks[216:].reshape(3, 3, 4), by_channel[..., 24:])


def test_for_rvv_the_weights_of_all_outputs_lie_side_by_side() -> None:
    weights = drawn(5, 2, 3, 4)
    found = by_inputs(weights)
    assert found.nbytes == pairs(weights).nbytes
    by_input = found.view(np.int8)[: weights.size].reshape(2, 3, 4, 5)
    np.testing.assert_array_equal(by_input[1, 2, 3], weights[:, 1, 2, 3])
    handed = quick("pointwise", GEOMETRY, quantities(drawn(5, 1, 1, 6)))
    assert handed is not None
    scales = handed[1].orders[1][RVV]
    np.testing.assert_array_equal(2 * scales[0], handed[1].bias[:, 0])
    np.testing.assert_array_equal(scales[1], handed[1].bias[:, 1])


def test_for_vectors_scales_are_in_the_order_of_the_sums() -> None:
    scales = np.stack([np.arange(28), 100 + np.arange(28)], axis=1)
    dense = scales_of_mve(scales[:6], is_depthwise=False)
    assert dense.tolist() == [0, 1, 2, 3, 100, 101, 102, 103, 4, 104, 5, 105]
    lanes = in_lanes(28).tolist()
    assert lanes[:16] == [0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15]
    assert lanes[16:] == [16, 18, 20, 22, 17, 19, 21, 23, 24, 25, 26, 27]
    depthwise = scales_of_mve(scales, is_depthwise=True).reshape(-1, 2, 4)
    np.testing.assert_array_equal(depthwise[:, 0].reshape(-1), lanes)
    np.testing.assert_array_equal(depthwise[:, 1], depthwise[:, 0] + 100)


def test_depthwise_weights_whose_products_16_bits_do_not_hold_take_the_general_kernel() -> None:
    geometry = {**GEOMETRY, "depth": 8, "out_depth": 8, "kernel_y": 3, "kernel_x": 3}
    given = quantities(drawn(3, 3, 8))
    each = np.full(8, 2**30, np.int32)
    given = replace(given, bias=each[:8] >> 20, factors=each, shifts=np.full(8, -8, np.int8))
    assert quick("depthwise", geometry, given) is not None
    given.weights[1, 1, 5] = INT8.min
    assert quick("depthwise", geometry, given) is None


def test_the_file_of_weights_and_the_kernels_agree_on_processors_with_vectors() -> None:
    source = files("arenite.runtime.cexport.kernels").joinpath("dsp.h").read_text()
    for each, header in ((MVE, "arm_mve"), (RVV, "riscv_vector")):
        macro = f"HAS_{each.name.upper()}"
        assert f"#if {each.condition}\n#include <{header}.h>\n#define {macro} 1\n" in source


def test_a_pair_that_16_bits_do_not_hold_is_left_to_the_general_kernel() -> None:
    weights = drawn(5, 1, 1, 6)
    assert quick("pointwise", GEOMETRY, quantities(weights)) is not None
    weights[0, 0, 0, 2], weights[1, 0, 0, 2] = -1, INT8.min
    assert not fits_pairs(weights)
    assert quick("pointwise", GEOMETRY, quantities(weights)) is None


def test_sums_that_32_bits_do_not_hold_are_left_to_the_general_kernel() -> None:
    assert fits_pairs(np.full((2, 1, 1, 510), 127, np.int8))
    assert not fits_pairs(np.full((2, 1, 1, 520), 127, np.int8))
    large = quantities(drawn(5, 1, 1, 6))
    large = replace(large, bias=np.full(5, 2**30, np.int32), factors=large.factors[:1])
    assert quick("pointwise", GEOMETRY, large) is None


def test_a_shift_to_the_left_is_left_to_the_general_kernel() -> None:
    given = quantities(drawn(5, 1, 1, 6))
    shifts = np.array([-8, -8, 0, -8, -8], np.int8)
    assert quick("pointwise", GEOMETRY, replace(given, shifts=shifts)) is None


def test_an_output_whose_results_are_all_alike_becomes_a_bias() -> None:
    given = quantities(drawn(5, 1, 1, 6))
    bias = np.array([2**30, -(2**30), 0, 9, 9], np.int32)
    shifts = np.array([-2, -28, 0, -8, -8], np.int8)
    factors = np.array([2**30, 2**30, 0, 2**30, 2**30], np.int32)
    found = quick("pointwise", GEOMETRY, replace(given, bias=bias, shifts=shifts, factors=factors))
    assert found is not None
    name, handed = found
    assert name == "pointwise_pairs"
    weights = unpacked(handed.weights, (5, 1, 1, 6))
    assert not weights[:3].any()
    np.testing.assert_array_equal(weights[3:], given.weights[3:])
    # Twice the sum, divided by 8: what is added to the zero point 3 gives 127, 1 and 3.
    np.testing.assert_array_equal(handed.bias[:3, 0], [8 * 124, 8 * -2, 0])
    assert (handed.bias[:3, 1] == 2**30).all()
    assert (handed.shifts[:3] == 0).all()
