"""Products of bytes that are added to sums of 32 bits, against those of numpy, to the bit."""

import numpy as np
import pytest

from arenite.runtime import Session
from arenite.runtime.rewrites import packed_integer_filter
from support.one_step import Given, constant, one_step

SOURCE, RESULT = (0.05, -7), (0.3, 12)
DRAW = np.random.default_rng(7)


def draw(low, high, shape, dtype):
    return DRAW.integers(low, high, shape, endpoint=True).astype(dtype)


def of_bytes(shape, stated, dtype="int8"):
    return Given(shape, dtype, None, stated[:1], stated[1])


def windows(image, zero, kernel, padding):
    """Return the elements under each window, less the zero point."""
    margins = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    padded = np.pad(image.astype(np.int64) - zero, margins)
    found = np.lib.stride_tricks.sliding_window_view(padded, kernel, (1, 2))
    return np.moveaxis(found, 3, -1).reshape(*found.shape[:3], -1)


CASES = {
    "one row": ((1, 16), 16, 1, 0),
    "a panel that is not full": ((1, 64), 21, 1, 0),
    "quads that are not full": ((5, 37), 40, 1, 0),
    "many rows": ((70, 64), 300, 1, 0),
    "one pixel": ((2, 4, 5, 24), 33, 1, 0),
    "a window": ((1, 9, 8, 5), 20, 3, 1),
    "pieces of depth": ((1, 20, 17, 40), 17, 15, 0),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("is_last", [False, True], ids=["sums", "bytes"])
@pytest.mark.parametrize("name", CASES)
def test_an_addend_of_sums_is_added_before_they_are_scaled(name, is_last, dtype):
    shape, outputs, kernel, padding = CASES[name]
    is_image, shift = len(shape) == 4, 128 if dtype == "uint8" else 0
    source, made = ((scale, zero + shift) for scale, zero in (SOURCE, RESULT))
    image = draw(shift - 128, shift + 127, shape, dtype)
    weights = draw(-127, 127, (outputs, kernel, kernel, shape[-1]), np.int8)
    rows = windows(image, source[1], (kernel, kernel), padding) if is_image else (
        image.astype(np.int64) - source[1]
    )  # fmt: skip
    sums = rows @ weights.reshape(outputs, -1).T.astype(np.int64)
    addend = draw(-(2**31), 2**31 - 1, sums.shape, np.int32)
    filters = constant(packed_integer_filter(weights), scales=[1.0])
    inputs = [of_bytes(shape, source, dtype), filters, None, Given(sums.shape, "int32")]
    result, expected = Given(sums.shape, "int32"), (sums + addend).astype(np.int32)
    if is_last:
        bias = draw(-9999, 9999, outputs, np.int32)
        scales = DRAW.uniform(1e-8, 9e-8, outputs).astype(np.float32)
        inputs = [*inputs[:2], constant(bias), inputs[3], constant(scales)]
        result = of_bytes(sums.shape, made, dtype)
        scaled = np.rint((expected + bias).astype(np.float32) * scales) + made[1]
        expected = np.clip(scaled, shift - 128, shift + 127).astype(dtype)
    kind = "Conv2D" if is_image else "FullyConnected"
    fields = {"kernel": [kernel] * 2, "padding": [padding] * 4} if is_image else {}
    with Session.of_pieces(one_step(kind, fields, inputs, [result]), "sums") as session:
        found = session.run({"i0": image, "i3": addend})["o0"]
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found)) > 10
