"""Transposed convolutions beside a loop, and by rows beside themselves whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.operators.operator import Operands
from arenite.planner.tensors import DType, Tensor
from arenite.runtime.operators import PANEL, TransposedConv2D
from support.one_step import constant
from support.row_programs import QUANTISED, assert_bands_make_the_whole, image


@st.composite
def layers(draw):
    """What a transposed convolution slides over, and how."""
    found = {"lengths": [], "kernel": [], "strides": [], "dilations": [], "adjustment": [],
             "made": []}  # fmt: skip
    pads = []
    for _ in range(2):
        length, kernel, stride, dilation = (draw(st.integers(1, n)) for n in (7, 5, 4, 3))
        adjustment = draw(st.integers(0, stride - 1))
        full = stride * (length - 1) + dilation * (kernel - 1) + 1 + adjustment
        before = draw(st.integers(0, min(full - 1, 9)))
        after = draw(st.integers(0, min(full - 1 - before, 9)))
        pads.append((before, after))
        for name, value in (
            ("lengths", length), ("kernel", kernel), ("strides", stride), ("dilations", dilation),
            ("adjustment", adjustment), ("made", full - before - after),
        ):  # fmt: skip
            found[name].append(value)
    found["padding"] = [pads[0][0], pads[1][1], pads[0][1], pads[1][0]]
    return found


def spread(x, weights, drawn, groups):
    """A transposed convolution of numbers, H, W, C, element by element."""
    rows, columns = drawn["made"]
    outputs, height, width, inputs = weights.shape
    result = np.zeros((rows, columns, outputs))
    top, _, _, left = drawn["padding"]
    for y in range(x.shape[0]):
        for z in range(x.shape[1]):
            for i in range(height):
                for j in range(width):
                    at = y * drawn["strides"][0] - top + i * drawn["dilations"][0]
                    to = z * drawn["strides"][1] - left + j * drawn["dilations"][1]
                    if 0 <= at < rows and 0 <= to < columns:
                        for group in range(groups):
                            some = slice(
                                group * outputs // groups, (group + 1) * outputs // groups
                            )
                            taken = x[y, z, group * inputs : (group + 1) * inputs]
                            result[at, to, some] += weights[some, i, j] @ taken
    return result


@settings(max_examples=120, deadline=None)
@given(st.data())
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_pixels_are_spread(dtype, data):
    drawn = data.draw(layers())
    groups = data.draw(st.sampled_from([1, 1, 2]))
    inputs, outputs = groups * data.draw(st.integers(1, 5)), groups * data.draw(st.integers(1, 19))
    seed = data.draw(st.integers(0, 99))
    numbers = np.random.default_rng(seed)
    shape = (outputs, *drawn["kernel"], inputs // groups)
    fields = {
        "strides": drawn["strides"], "dilations": drawn["dilations"],
        "padding": drawn["padding"], "adjustment": drawn["adjustment"], "groups": groups,
        "min": -30.0, "max": 30.0,
    }  # fmt: skip
    x, y = (image(*drawn[name], count, dtype=dtype)
            for name, count in (("lengths", inputs), ("made", outputs)))  # fmt: skip
    if dtype == "float32":
        weights = numbers.normal(size=shape).astype(np.float32)
        bias = numbers.normal(size=outputs).astype(np.float32)
        operands, real, added = [constant(weights), constant(bias)], weights, bias
    else:
        weights = numbers.integers(-127, 128, shape).astype(np.int8)
        bias = numbers.integers(-500, 500, outputs).astype(np.int32)
        scales = numbers.uniform(0.01, 0.03, outputs).astype(np.float32)
        operands = [constant(weights, scales=scales.tolist()), constant(bias)]
        real, added = weights * scales[:, None, None, None].astype(float), bias * scales * 0.05
    operator = TransposedConv2D(
        strides=tuple(drawn["strides"]), dilations=tuple(drawn["dilations"]),
        padding=tuple(drawn["padding"]), groups=groups,
    )  # fmt: skip
    tensors = [Tensor(f"t{i}", DType.of_label(each.type), tuple(each.shape))
               for i, each in enumerate((x, operands[0], y))]  # fmt: skip
    scratch = operator.scratch(Operands(tuple(tensors[:2]), tuple(tensors[2:])))
    few = groups == 1 and outputs < PANEL and drawn["kernel"][0] == 1 and dtype == "float32"
    leaves_lanes = few and outputs * drawn["strides"][1] < PANEL
    assert few >= (scratch > 0) >= leaves_lanes
    feeds, made = assert_bands_make_the_whole(
        "TransposedConv2D", fields, [x, *operands], y, seed=seed, scratch=scratch
    )
    more = QUANTISED.get(dtype, {"scales": (1.0,), "zero_point": 0})
    scale, zero = more["scales"][0], more["zero_point"]
    source = (feeds["i0"][0].astype(float) - zero) * scale
    expected = spread(source, real, drawn, groups) + added
    limits = (-30.0, 30.0)
    if dtype != "float32":
        ends = np.iinfo(dtype)
        limits = (ends.min - zero) * scale, (ends.max - zero) * scale
    np.testing.assert_allclose(
        (made[0].astype(float) - zero) * scale, np.clip(expected, *limits),
        atol=1e-4 if dtype == "float32" else 0.501 * scale,
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_rows_that_reach_some_are_told(data):
    drawn = data.draw(layers())
    operator = TransposedConv2D(
        strides=tuple(drawn["strides"]), dilations=tuple(drawn["dilations"]),
        padding=tuple(drawn["padding"]), adjustment=tuple(drawn["adjustment"]),
    )  # fmt: skip
    shapes = ((1, *drawn["lengths"], 1), (1, *drawn["kernel"], 1), (1, *drawn["made"], 1))
    x, w, y = (Tensor(f"t{i}", DType.FLOAT32, shape) for i, shape in enumerate(shapes))
    operands = Operands((x, w), (y,))
    assert operator.makes_rows(operands)
    start = data.draw(st.integers(0, y.shape[1] - 1))
    stop = data.draw(st.integers(start + 1, y.shape[1]))
    region = ((0, 1), (start, stop), (0, y.shape[2]), (0, 1))
    low, high = operator.input_region(operands, 0, region)[1]
    reaching = [
        row
        for row in range(x.shape[1])
        for tap in range(drawn["kernel"][0])
        if start
        <= row * drawn["strides"][0] - drawn["padding"][0] + tap * drawn["dilations"][0]
        < stop
    ]
    assert not reaching or (low <= min(reaching) and max(reaching) < high)
    if reaching and drawn["dilations"][0] == 1:
        assert (low, high) == (min(reaching), max(reaching) + 1)
