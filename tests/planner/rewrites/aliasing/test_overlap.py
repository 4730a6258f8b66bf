"""The permitted overlap, against naive kernels that run over one shared buffer."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.programs.program import Program
from arenite.planner.rewrites.aliasing.overlap import permitted_overlap
from arenite.planner.sizes import Dimension
from arenite.planner.tensors import DType, TensorKind
from support.sliding_kernels import CHANNELS_FIRST, CHANNELS_LAST, Kernel, images, kernels
from support.tiny_graphs import graph_of, tensor


def graph(op_type, source, result, weights=None, attributes=None, dtype=DType.INT64) -> Program:
    tensors = [
        tensor("x", source, TensorKind.INPUT, dtype),
        tensor("y", result, TensorKind.OUTPUT, dtype),
    ]
    reads = ("x",)
    if weights:
        tensors.append(tensor("w", weights, TensorKind.CONSTANT, dtype))
        reads = ("x", "w")
    return graph_of(tensors, [(op_type, reads, ("y",), attributes or {})])


def overlap(*arguments, **more) -> int:
    made = graph(*arguments, **more)
    return permitted_overlap(made, made.steps[0])


@st.composite
def any_kernel(draw) -> Kernel:
    return draw(kernels(draw(images()), CHANNELS_LAST + CHANNELS_FIRST))


def shared_run(kernel: Kernel, distance: int) -> np.ndarray:
    """Return the result that begins `distance` elements below the operand."""
    size = math.prod(kernel.source)
    memory = np.zeros(distance + max(size, len(kernel.reads)), np.int64)
    memory[distance : distance + size] = np.random.default_rng(1).integers(1, 10**6, size)
    kernel.run(memory[distance:], memory)
    return memory[: len(kernel.reads)]


@settings(max_examples=300, deadline=None)
@given(any_kernel())
def test_the_permitted_overlap_is_safe_and_one_element_more_is_not(kernel):
    layout = kernel.op_type in CHANNELS_LAST
    permitted = overlap(
        kernel.op_type,
        kernel.source.shape(layout),
        kernel.result.shape(layout),
        kernel.weights,
        kernel.attributes,
    )
    assert permitted % 8 == 0
    distance = len(kernel.reads) - permitted // 8
    apart = shared_run(kernel, len(kernel.reads))
    np.testing.assert_array_equal(shared_run(kernel, distance), apart)
    if 0 < distance < len(kernel.reads):
        assert not np.array_equal(shared_run(kernel, distance - 1), apart)


def test_a_pointwise_convolution_needs_the_larger_image_and_a_pixel_less_one():
    permitted = overlap("CONV_2D", (1, 8, 8, 4), (1, 8, 8, 6), (6, 1, 1, 4), dtype=DType.INT8)
    total = 8 * 8 * 6 - permitted + 8 * 8 * 4
    assert total == 8 * 8 * 6 + 4 - 1


def test_a_depthwise_convolution_stays_a_row_and_a_pixel_behind_what_it_reads():
    permitted = overlap(
        "DEPTHWISE_CONV_2D", (1, 16, 16, 4), (1, 16, 16, 4), (1, 3, 3, 4),
        {"auto_pad": "SAME_UPPER", "strides": (1, 1)}, dtype=DType.INT8,
    )  # fmt: skip
    assert 16 * 16 * 4 - permitted == 16 * 4 + 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("Relu", (1, 4, 4, 2), (1, 4, 4, 2)),
        ("MaxPool", (1, 4, 4), (1, 4, 4), None, {"kernel_shape": (1, 1)}),
        ("MaxPool", (1, 2, 4, 4), (1, 2, 4, 4)),
        ("MAX_POOL_2D", (1, 4, 4, 2), (1, 4, 4, 2), None, {"kernel_shape": (0, 1)}),
        ("Conv", (1, 4, 4, 2), (1, 4, 4, 2), (4, 4, 1, 1), {"group": 3}),
        ("Conv", (1, 4, 4, 2), (1, 4, 4, 2)),
    ],
)
def test_where_nothing_is_known_of_a_window_no_overlap_is_permitted(arguments):
    assert overlap(*arguments) == 0


def test_elements_of_different_sizes_do_not_overlap():
    made = graph("MAX_POOL_2D", (1, 4, 4, 2), (1, 4, 4, 2), None, {"kernel_shape": (1, 1)})
    wide = tensor("y", (1, 4, 4, 2), TensorKind.OUTPUT, DType.INT8)
    narrow = Program.of("test", [made.tensors["x"], wide], made.steps, ["x"], ["y"])
    assert permitted_overlap(made, made.steps[0]) > 0
    assert permitted_overlap(narrow, narrow.steps[0]) == 0


def test_an_operand_that_is_also_the_weights_is_not_reached_into():
    made = graph_of(
        [tensor("x", (2, 2, 1, 1), TensorKind.INPUT), tensor("y", (2, 2, 1, 1))],
        [("Conv", ("x", "x"), ("y",))],
    )
    assert permitted_overlap(made, made.steps[0]) == 0


@pytest.mark.parametrize(("stride", "channels"), [(1, 4), (2, 4), (2, 8), (1, 3)])
def test_results_begin_as_far_below_as_any_size_needs(stride, channels):
    def of(height, width):
        rows, columns = ((length - 1) // stride + 1 for length in (height, width))
        return graph(
            "CONV_2D", (1, height, width, 4), (1, rows, columns, channels), (channels, 1, 1, 4),
            {"stride_h": stride, "stride_w": stride, "padding": "SAME"}, DType.INT8,
        )  # fmt: skip

    def distance(made):
        permitted = permitted_overlap(made, made.steps[0])
        assert permitted
        return int(made.tensors["y"].size) - permitted

    ranges = Dimension("h", 6, 9), Dimension("w", 5, 12)
    every = [distance(of(h, w)) for h in ranges[0].values for w in ranges[1].values]
    ranged = replace(of(ranges[0].size, ranges[1].size), dimensions=ranges)
    assert distance(ranged) == max(every)
    many = Dimension("h", 6, 1 << 20), Dimension("w", 5, 12)
    made = replace(of(many[0].size, many[1].size), dimensions=many)
    assert permitted_overlap(made, made.steps[0]) == 0


def test_results_overlap_along_every_size_of_a_large_image():
    def of(size):
        shape = (1, size, size, 8)
        window = {"auto_pad": "SAME_UPPER", "strides": (1, 1)}
        return graph("DEPTHWISE_CONV_2D", shape, shape, (1, 3, 3, 8), window, DType.INT8)

    pixels = Dimension("pixels", 32, 224)
    ranged = replace(of(pixels.size), dimensions=(pixels,))
    assert int(ranged.tensors["y"].size) - permitted_overlap(ranged, ranged.steps[0]) == 225 * 8
