"""Layers by vectors, on an emulated Cortex-M55, with every rounding."""

from collections.abc import Callable

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from dataclasses import replace

from bench.boards.board import board
from bench.boards.program import build, exported
from bench.boards.run import joined, random_inputs, run, tflm_outputs
from support.command import main
from support.operator_models import S8, binary, conv, dense, depthwise

M55 = board("mps3-an547")
RUNS = 3
LAYERS: dict[str, Callable[[], bytes]] = {
    "window of long rows": lambda: conv(depth=(9, 21), activation=3),
    "window of short rows": lambda: conv(depth=(5, 6), stride=2),
    "rows of 16": lambda: conv(depth=(16, 7), window=(2, 1), padding=0),
    "wider than the image": lambda: conv(size=(2, 3), depth=(4, 16), window=(5, 5)),
    "dilated rows": lambda: conv(depth=(8, 5), window=(3, 1), dilation=2),
    "tall window": lambda: conv(size=(25, 4), depth=(1, 5), window=(20, 8)),
    "rows of vectors": lambda: conv(depth=(16, 6), activation=3),
    "rows of vectors, of a stride": lambda: conv(depth=(32, 8), window=(5, 3), stride=2),
    "vectors wider than the image": lambda: conv(size=(2, 3), depth=(16, 4), window=(5, 5)),
    "tall window of vectors": lambda: conv(size=(9, 4), depth=(16, 5), window=(7, 2)),
    "one pixel of vectors": lambda: conv(depth=(48, 9), window=(1, 1), stride=2),
    "one pixel of a stride": lambda: conv(depth=(19, 13), window=(1, 1), stride=2),
    "results alike": lambda: conv(depth=(9, 8), extreme=True),
    "dense": dense,
    "depthwise": lambda: depthwise(depth=28),
    "depthwise of many taps": lambda: depthwise(depth=20, window=(5, 5)),
    "depthwise along a row": lambda: depthwise(depth=24, window=(1, 7), activation=3),
    "depthwise of a stride": lambda: depthwise(depth=8, stride=2, activation=3),
    "depthwise, dilated": lambda: depthwise(depth=12, dilation=3),
    "add": lambda: binary("ADD", S8, (1, 4, 5, 3), (1, 4, 5, 3), 1),
    "subtract": lambda: binary("SUB", S8, (2, 30), (2, 30)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_the_interpreters_bits(name, tmp_path):
    model = tmp_path / "layer.tflite"
    model.write_bytes(LAYERS[name]())
    assert main(["export", str(model), "--to", "c", "--no-test", "-o", str(tmp_path / "c")]) == 0
    inputs = random_inputs(model, RUNS)
    report = run(build(M55, exported(tmp_path / "c"), tmp_path / "board"), joined(inputs))
    report.require_sound()
    assert report.outputs == joined(tflm_outputs(model, inputs))


@pytest.mark.parametrize("flags", [(), ("-mcpu=cortex-m55+nomve.fp",)], ids=["floats", "integers"])
@pytest.mark.parametrize("rounding", ["single", "even"])
@pytest.mark.parametrize("name", ["rows of vectors", "window of long rows", "depthwise"])
def test_other_roundings_give_the_bits_of_portable_c(name, rounding, flags, tmp_path):
    """The exported test checks outputs that portable C gives on this machine."""
    model = tmp_path / "layer.tflite"
    model.write_bytes(LAYERS[name]())
    folder = tmp_path / "c"
    options = ["--to", "c", "--rounding", rounding, "-o", str(folder)]
    assert main(["export", str(model), *options]) == 0
    inputs = random_inputs(model, RUNS)
    found = [
        run(build(target, exported(folder), tmp_path / target.processor), joined(inputs)).outputs
        for target in (
            replace(M55, flags=(*M55.flags, *flags)),
            replace(M55, processor="nomve", flags=(*M55.flags, "-mcpu=cortex-m55+nomve")),
        )
    ]
    assert found[0] == found[1]
