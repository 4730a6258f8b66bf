"""C source that runs on the hops of a stream, beside C source of whole windows."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.runtime.rewrites import Hops
from support.exported_c import Machine, compiled, exported
from support.quantised_onnx import FORMS, quantised

WINDOW, HOP = 24, 4
NETWORK = (
    "(float[1,6,24,5] x) => (y) <float[8,6,3,3] w, float[8] b, float[8,1,5,3] d, "
    "float[4,8,1,1] g> {c = Conv<pads=[0,1,0,1]>(x, w, b) r = Relu(c) "
    "e = Conv<group=8, pads=[0,1,0,1]>(r, d) q = GlobalAveragePool(e) y = Conv(q, g)}"
)


@pytest.mark.parametrize(
    ("rounding", "padded", "parts"), [("double", 0, 1), ("even", 0, 4), ("double", 1, 1)]
)
def test_bytes_of_hops_are_those_of_the_window_to_the_bit(tmp_path, rounding, padded, parts):
    text = NETWORK.replace("pads=[0,1,0,1]", f"pads=[{padded},1,{padded},1]")
    path = quantised(tmp_path, FORMS["qdq, signed"], text)
    hops = exported(path, reading=Reading(hops=Hops("x", 2, HOP, parts=parts)), rounding=rounding)
    windows = exported(path, rounding=rounding)
    # Of the rows that the pool averages, unless some are made again for each window.
    assert ("partial_sums_s8" in hops.kernels) == (not padded)
    stream, whole = (
        Machine.of(each, compiled(each, tmp_path / name))
        for name, each in (("hops", hops), ("windows", windows))
    )
    x = np.random.default_rng(0).uniform(-2, 2, (1, 6, 80, 5)).astype(np.float32)
    stored = x.transpose(hops.interface.inputs[0].port.axes or range(4))
    axis = stored.shape.index(80)
    for end in range(HOP, 81, HOP):
        made = stream.run({"x": np.take(stored, range(end - HOP, end), axis)})["y"]
        if end >= WINDOW:
            window = {"x": np.take(stored, range(end - WINDOW, end), axis)}
            np.testing.assert_array_equal(made, whole.run(window)["y"])
