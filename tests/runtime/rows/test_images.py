"""Pools, copies, resized images, norms and sums by rows, beside the same steps whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.operators.operator import Operands
from arenite.planner.tensors import DType, Tensor
from arenite.runtime.operators import Copy, Move, Pool2D, PoolKind
from support.one_step import Given, constant
from support.row_programs import QUANTISED, assert_bands_make_the_whole, image

TYPES = ["float32", "int8", "uint8"]


@st.composite
def windows(draw):
    """An image, a window, and how it slides: at least one place, and one tap of each inside."""
    found = {"window": [], "strides": [], "dilations": [], "lengths": [], "made": []}
    pads = []
    for _ in range(2):
        kernel, dilation, stride = (draw(st.integers(1, n)) for n in (4, 2, 3))
        extent = (kernel - 1) * dilation + 1
        before, after = (draw(st.integers(0, kernel - 1)) for _ in range(2))
        length = draw(st.integers(max(1, extent - before - after), 12))
        for name, value in (
            ("window", kernel), ("strides", stride), ("dilations", dilation), ("lengths", length),
            ("made", (length + before + after - extent) // stride + 1),
        ):  # fmt: skip
            found[name].append(value)
        pads.append((before, after))
    found["padding"] = [pads[0][0], pads[1][1], pads[0][1], pads[1][0]]
    return found


def naive_pool(x, window, strides, dilations, padding, made, kind, count_padding):
    """A pool of numbers, H, W, C, element by element."""
    result = np.zeros((*made, x.shape[-1]))
    top, right, bottom, left = padding
    for y in range(made[0]):
        for z in range(made[1]):
            taps, counted = [], 0
            for i in range(window[0]):
                for j in range(window[1]):
                    at = y * strides[0] - top + i * dilations[0]
                    to = z * strides[1] - left + j * dilations[1]
                    inside = 0 <= at < x.shape[0] and 0 <= to < x.shape[1]
                    counted += at < x.shape[0] + bottom and to < x.shape[1] + right
                    if inside:
                        taps.append(x[at, to])
            if kind == "maximum":
                result[y, z] = np.max(taps, 0) if taps else -np.inf
            else:
                count = counted if count_padding else max(len(taps), 1)
                result[y, z] = np.sum(taps, 0) / count if taps else 0
    return result


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", ["maximum", "average"])
@pytest.mark.parametrize("dtype", TYPES)
def test_pools(dtype, kind, data):
    drawn = data.draw(windows())
    channels = data.draw(st.sampled_from([1, 3, 16, 19, 70]))
    count_padding = data.draw(st.booleans())
    lengths, made = drawn.pop("lengths"), drawn.pop("made")
    kernel = drawn | {"kind": kind, "count_padding": count_padding, "min": -9.0, "max": 9.0}
    takes = kind == "average" and made[0] == 1
    x, y = image(*lengths, channels, dtype=dtype), image(*made, channels, dtype=dtype)
    feeds, result = assert_bands_make_the_whole(
        "Pool2D", kernel, [x], y, rows=lengths[0] if takes else None, gathers=not takes,
        scratch=4 * made[1] * channels, seed=data.draw(st.integers(0, 99)),
    )  # fmt: skip
    more = QUANTISED.get(dtype, {"scales": (1.0,), "zero_point": 0})
    scale, zero = more["scales"][0], more["zero_point"]
    numbers = (feeds["i0"][0].astype(float) - zero) * scale
    expected = naive_pool(numbers, **drawn, made=made, kind=kind, count_padding=count_padding)
    low = max(-9.0, (np.iinfo(dtype).min - zero) * scale) if dtype != "float32" else -9.0
    high = min(9.0, (np.iinfo(dtype).max - zero) * scale) if dtype != "float32" else 9.0
    np.testing.assert_allclose(
        (result[0].astype(float) - zero) * scale, np.clip(expected, low, high),
        atol=1e-5 if dtype == "float32" else 0.5001 * scale,
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("function", ["sum", "mean"])
@pytest.mark.parametrize("dtype", TYPES)
def test_sums_of_images(dtype, function, data):
    rows, columns = data.draw(st.integers(1, 15)), data.draw(st.integers(1, 9))
    channels = data.draw(st.sampled_from([1, 7, 16, 67, 130]))
    x = image(rows, columns, channels, dtype=dtype)
    keeps = data.draw(st.booleans())
    shape = (1, 1, 1, channels) if keeps else (1, channels)
    result = Given(shape, dtype, **QUANTISED.get(dtype, {}))
    feeds, made = assert_bands_make_the_whole(
        "Reduce", {"function": function, "axes": [1, 2]}, [x], result, rows=rows, gathers=False,
        scratch=4 * channels, seed=data.draw(st.integers(0, 99)),
    )  # fmt: skip
    more = QUANTISED.get(dtype, {"scales": (1.0,), "zero_point": 0})
    scale, zero = more["scales"][0], more["zero_point"]
    numbers = (feeds["i0"].astype(float) - zero) * scale
    expected = getattr(numbers, function)((1, 2)).reshape(shape)
    if dtype != "float32":
        limits = np.iinfo(dtype)
        expected = np.clip(expected, (limits.min - zero) * scale, (limits.max - zero) * scale)
    np.testing.assert_allclose((made.astype(float) - zero) * scale, expected,
                               atol=1e-4 if dtype == "float32" else 0.5001 * scale)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("blends", [False, True])
@pytest.mark.parametrize("size", [(1, 4, 9, 7), (6, 5, 13, 9), (9, 8, 4, 3)])
def test_resized_images(size, blends, dtype):
    rows, columns, new_rows, new_columns = size
    kernel = {}
    for name, length, count in (("row", rows, new_rows), ("column", columns, new_columns)):
        places = np.linspace(0, length - 1, count)
        low = np.floor(places).astype(int)
        kernel[f"{name}_low"] = low.tolist()
        if blends:
            kernel[f"{name}_high"] = np.minimum(low + 1, length - 1).tolist()
            kernel[f"{name}_weight"] = (places - low).tolist()
    x, y = image(rows, columns, 11, dtype=dtype), image(new_rows, new_columns, 11, dtype=dtype)
    assert_bands_make_the_whole("Resize2D", kernel, [x], y)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax_of_each_pixel(dtype):
    x = image(7, 3, 21, dtype=dtype)
    assert_bands_make_the_whole("Softmax", {}, [x], x)
    assert_bands_make_the_whole("Softmax", {"logarithm": True}, [x], x)


def test_norms_of_each_pixel():
    x = image(7, 3, 21)
    draw = np.random.default_rng(0)
    scale, shift = (constant(draw.normal(size=21).astype(np.float32)) for _ in range(2))
    assert_bands_make_the_whole("L2Norm", {"epsilon": 1e-6}, [x], x)
    assert_bands_make_the_whole("LayerNorm", {"epsilon": 1e-5}, [x, scale, shift], x)
    assert_bands_make_the_whole(
        "LocalResponseNorm", {"size": 5, "alpha": 1e-2, "beta": 0.75, "bias": 1.0}, [x], x
    )


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("keeps", [False, True])
def test_the_largest_of_each_pixel(keeps, dtype, index):
    x = image(7, 3, 21, dtype=dtype)
    made = Given((1, 7, 3, 1) if keeps else (1, 7, 3), index)
    assert_bands_make_the_whole("ArgReduce", {"axis": 3}, [x], made)


def move(shape, input_strides, output_strides, **more):
    return {
        "shape": list(shape), "input_strides": list(input_strides),
        "output_strides": list(output_strides), **more,
    }  # fmt: skip


COPIES = {
    "joined channels": (
        [(6, 4, 3), (6, 4, 5)], (6, 4, 8), b"",
        [move((24, 3), (3, 1), (8, 1)), move((24, 5), (5, 1), (8, 1), input=1, output_start=3)],
    ),
    "a margin": (
        [(5, 4, 3)], (8, 7, 3), bytes(4),
        [move((5, 12), (12, 1), (21, 1), output_start=21 + 3)],
    ),
    "every other row": ([(7, 4, 3)], (4, 4, 3), b"", [move((4, 12), (24, 1), (12, 1))]),
    "rows upside down": (
        [(5, 4, 3)], (5, 4, 3), b"", [move((5, 12), (-12, 1), (12, 1), input_start=48)],
    ),
    "channels turned": ([(5, 4, 3)], (5, 3, 4), b"", [move((5, 3, 4), (12, 1, 3), (12, 4, 1))]),
    "one run": ([(5, 4, 3)], (3, 4, 3), b"", [move((36,), (1,), (1,), input_start=12)]),
    "rows joined": (
        [(3, 4, 3), (2, 4, 3)], (5, 4, 3), b"",
        [move((36,), (1,), (1,)), move((24,), (1,), (1,), input=1, output_start=36)],
    ),
    "space to depth": (
        [(6, 4, 3)], (3, 2, 12), b"",
        [move((3, 2, 2, 2, 3), (24, 12, 6, 3, 1), (24, 6, 12, 3, 1))],
    ),
    "depth to space": (
        [(3, 2, 12)], (6, 4, 3), b"",
        [move((3, 2, 2, 2, 3), (24, 6, 12, 3, 1), (24, 12, 6, 3, 1))],
    ),
}  # fmt: skip


def operator_of(name):
    """Return the operator of a copy, and its operands."""
    sources, result, fill, moves = COPIES[name]
    tensors = [Tensor(f"i{i}", DType.FLOAT32, (1, *shape)) for i, shape in enumerate(sources)]
    stated = tuple(
        Move(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for each in moves
    )
    operator = Copy(moves=stated, fill=fill)
    return operator, Operands(tuple(tensors), (Tensor("y", DType.FLOAT32, (1, *result)),))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", COPIES)
def test_copies(name, seed):
    sources, result, fill, moves = COPIES[name]
    kernel = {"moves": moves} | ({"fill": list(fill)} if fill else {})
    operator, operands = operator_of(name)
    assert operator.makes_rows(operands)
    inputs = [image(*shape) for shape in sources]
    assert_bands_make_the_whole("Copy", kernel, inputs, image(*result), seed=seed,
                                apart=range(len(inputs)))  # fmt: skip


def test_a_pool_that_makes_one_row_is_summed_up_or_made():
    step = Operands(
        (Tensor("x", DType.INT8, (1, 7, 5, 3)),), (Tensor("y", DType.INT8, (1, 1, 1, 3)),)
    )
    average = Pool2D(kind=PoolKind.AVERAGE, window=(7, 5))
    assert (average.accumulates_rows(step), average.makes_rows(step)) == (12, False)
    largest = Pool2D(kind=PoolKind.MAXIMUM, window=(7, 5))
    assert (largest.accumulates_rows(step), largest.makes_rows(step)) == (0, True)
