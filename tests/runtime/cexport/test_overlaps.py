"""Results that lie over their operands are computed in an order that reads each byte in time."""

from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.targets.c import compile_for_c
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.exported_c import Machine, Ours, compiled, drawn, exported
from support.shared_material import shared
from support.tiny_onnx import parse, save

GRAPH = (
    "(float[1,2,3,8] x, float[1,2,3,8] z, float[1,12,{width}] w) => (y) "
    "<int64[3] s = {{1, 12, 8}}> {{a = Neg(x) b = Neg(z) c = Concat<axis=1>(a, b) "
    "d = Reshape(c, s) e = Neg(w) f = Concat<axis=2>({operands}) y = Neg(f)}}"
)
JOINS = {
    "rows of the first operand": GRAPH.format(width=2, operands="d, e"),
    "rows of the second operand": GRAPH.format(width=2, operands="e, d"),
    "rows that reach into their places": GRAPH.format(width=1, operands="e, d"),
}


@pytest.mark.parametrize("strategy", ["greedy-by-size", "best"])
@pytest.mark.parametrize("name", JOINS)
def test_rows_are_spread_in_place_and_every_output_is_right(
    name: str, strategy: str, tmp_path: Path
) -> None:
    path = save(tmp_path, parse(JOINS[name]))
    model = compile_for_c(path)
    export = export_c(model, find(strategy)(model.source.problem), COptions())
    assert "spread" in export.kernels
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    (expected,) = Ours(path).run(list(inputs.values()))
    (found,) = machine.run(inputs).values()
    np.testing.assert_array_equal(found, expected)


INSIDE = {
    "a result, and a join that holds it": "(float[1,5,3,2] x, float[1,5,3,2] z) => (y) {"
    "a = Neg(x) b = Neg(z) c = Concat<axis=1>(a, x, b) d = Concat<axis=1>(a, c) y = Neg(d)}",
    "an image, and its last channel": "(float[1,6,1,1] x, float[1,1,4,5] z) => (y) "
    "<int64[1] from = {5}, int64[1] to = {6}, int64[1] axis = {1}> {"
    "a = Add(x, z) b = Slice(a, from, to, axis) "
    "c = Concat<axis=1>(a, b) y = Neg(c)}",
}


@pytest.mark.parametrize("name", INSIDE)
def test_an_operand_within_another_that_lies_in_its_place_is_copied(
    name: str, tmp_path: Path
) -> None:
    path = save(tmp_path, parse(INSIDE[name]))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    (expected,) = Ours(path).run(list(inputs.values()))
    (found,) = machine.run(inputs).values()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("file", "units"),
    [
        ("models/onnx/mini_concat_reshape_concat.onnx", 0),
        ("models/tflite/yolox_nano_only_int8_quantize.tflite", 4),
    ],
)
def test_a_network_that_joins_reshapes_and_joins_has_every_output_right(
    file: str, units: int, tmp_path: Path
) -> None:
    path = shared(file)
    export = exported(path)
    (axes,) = (port.port.axes for port in export.interface.outputs)
    machine = Machine.of(export, compiled(export, tmp_path / "c"))
    inputs = drawn(export, 0)
    (expected,) = Ours(path).run(list(inputs.values()))
    (found,) = machine.run(inputs).values()
    if axes is not None:
        expected = expected.transpose(axes)
    assert np.abs(found.astype(float) - expected.astype(float)).max() <= units
