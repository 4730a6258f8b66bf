"""Padding by zeros that a convolution does itself."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from arenite.planner.importers import load
from arenite.planner.programs.program import Program
from arenite.runtime.lowering import lower_onnx
from arenite.runtime.operators import Copy
from arenite.runtime.rewrites import fold_pads
from support.exported_c import Machine, compiled, drawn, exported
from support.tiny_onnx import parse, save, with_random_weights

HEAD = "(float[1,4,7,6] x) => (y) <float[5,4,3,3] w, float[5,4,3,3] v, int64[8] p = "
WIDE = "(float[1,4,7,6] x) => (y) <float[5,5,3,3] w, int64[8] p = "
# What the padding is, and what reads it: how many copies are left, and the graph.
NETWORKS = {
    "read twice": (0, HEAD + "{0,0,1,2,0,0,3,0}> { q = Pad(x, p) a = Conv(q, w) b = Conv(q, v) "
                      "y = Add(a, b) }"),
    "padded again": (0, HEAD + "{0,0,1,1,0,0,1,1}> { q = Pad(x, p) a = Conv<pads=[1,0,0,2]>(q, w) "
                        "b = Conv<pads=[1,0,0,2]>(q, v) y = Add(a, b) }"),
    "read by others too": (1, HEAD + "{0,0,1,1,0,0,1,1}> { q = Pad(x, p) a = Conv(q, w) "
                              "b = Relu(q) c = Conv(b, v) y = Add(a, c) }"),
    "channels": (1, WIDE + "{0,1,0,0,0,0,0,0}> { q = Pad(x, p) a = Conv(q, w) b = Conv(q, w) "
                    "y = Add(a, b) }"),
    "of another value": (1, HEAD + "{0,0,1,1,0,0,1,1}, float o = {1}> { q = Pad(x, p, o) "
                            "a = Conv(q, w) b = Conv(q, v) y = Add(a, b) }"),
}  # fmt: skip


def copies(program: Program) -> int:
    return sum(isinstance(step.operator, Copy) for step in program.steps)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_convolution_pads_itself_where_zeros_are_added(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, with_random_weights(parse(NETWORKS[name][1])))
    lowered = lower_onnx(load(path, weights=True))
    folded = fold_pads(lowered)
    assert copies(lowered) == 1
    assert copies(folded) == NETWORKS[name][0]
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    (port,) = export.interface.inputs
    given = inputs["x"]
    if port.port.axes is not None:
        given = np.ascontiguousarray(given.transpose(np.argsort(port.port.axes)))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": given})
    (found,) = machine.run(inputs).values()
    (port,) = export.interface.outputs
    if port.port.axes is not None:
        expected = expected.transpose(port.port.axes)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
