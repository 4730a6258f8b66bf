"""Models on a stream as C source on emulated boards, beside our session of whole windows."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import session_of
from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.rewrites import Hops
from bench.boards.board import board as board_named
from bench.boards.program import build, footprint
from bench.boards.program import exported as subject_of
from bench.boards.run import joined, run
from support.exported_c import exported, written
from support.quantised_onnx import FORMS, quantised
from support.tiny_onnx import parse, save, with_random_weights

WINDOW, HOP = 24, 4
NETWORK = (
    "(float[1,6,24,5] x) => (y) <float[8,6,3,3] w, float[8] b, float[8,1,5,3] d, float[8,8,1,1] "
    "p, float[4,8] g, int64[2] s = {1,8}> {c = Conv<pads=[0,1,0,1]>(x, w, b) r = Relu(c) "
    "e = Conv<group=8, pads=[0,1,0,1]>(r, d) f = Conv(e, p) q = GlobalAveragePool(f) "
    "h = Reshape(q, s) y = Gemm<transB=1>(h, g)}"
)
CASES = [
    ("mps2-an386", "floats", 12),
    ("mps2-an386", "qdq, signed", 120),
    ("mps3-an547", "qdq, signed", 12),
    ("microbit", "qdq, unsigned", 12),
]


@pytest.mark.parametrize(("board", "form", "runs"), CASES)
def test_a_board_keeps_rows_from_hop_to_hop(board, form, runs, tmp_path):
    if form == "floats":
        path = save(tmp_path, with_random_weights(parse(NETWORK)))
    else:
        path = quantised(tmp_path, FORMS[form], NETWORK)
    export = exported(path, reading=Reading(hops=Hops("x", 2, HOP)))
    subject = subject_of(written(export, tmp_path / "c"))
    program = build(board_named(board), subject, tmp_path / "b")
    x = np.random.default_rng(0).uniform(-2, 2, (1, 6, runs * HOP, 5)).astype(np.float32)
    axes = export.interface.inputs[0].port.axes or range(4)
    hops = [np.ascontiguousarray(each.transpose(axes)) for each in np.split(x, runs, axis=2)]
    report = run(program, joined([[each] for each in hops]))
    report.require_sound()
    assert footprint(program).variables == 0
    found = np.frombuffer(report.outputs, np.float32).reshape(runs, 4)
    with session_of(lower_model(path).program) as session:
        for end in range(WINDOW, runs * HOP + 1, HOP):
            expected = session.run({"x": x[:, :, end - WINDOW : end]})["y"][0]
            tolerance = 1e-5 if form == "floats" else 0.02
            bound = tolerance * np.abs(expected).max()
            np.testing.assert_allclose(found[end // HOP - 1], expected, 0, bound)
