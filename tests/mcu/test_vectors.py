"""Layers by vectors and DSP instructions, on emulated boards, with every rounding."""

from collections.abc import Callable

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from dataclasses import replace

from bench.boards.board import LARGE_M3, Board, board
from bench.boards.program import build, exported
from bench.boards.run import joined, random_inputs, run, tflm_outputs
from support.command import main
from support.operator_models import S8, binary, conv, dense, depthwise
from support.tflite_networks import hidden, tower

M4, M55, RVV = board("mps2-an386"), board("mps3-an547"), board("virt-rvv")
LONGER = replace(RVV, options=tuple(each.replace("=128", "=512") for each in RVV.options))
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
    "several vectors of outputs": lambda: conv(depth=(4, 71), activation=3),
    "many outputs": lambda: conv(depth=(8, 130), window=(1, 1)),
    "inputs left of a row": lambda: conv(depth=(3, 17), stride=2, activation=3),
    "results alike": lambda: conv(depth=(9, 8), extreme=True),
    "dense": dense,
    "depthwise": lambda: depthwise(depth=28),
    "depthwise of many taps": lambda: depthwise(depth=20, window=(5, 5)),
    "depthwise along a row": lambda: depthwise(depth=24, window=(1, 7), activation=3),
    "depthwise of a stride": lambda: depthwise(depth=8, stride=2, activation=3),
    "depthwise, dilated": lambda: depthwise(depth=12, dilation=3),
    "depthwise of several vectors": lambda: depthwise(depth=100),
    "add": lambda: binary("ADD", S8, (1, 4, 5, 3), (1, 4, 5, 3), 1),
    "subtract": lambda: binary("SUB", S8, (2, 30), (2, 30)),
    "network of 16 bits": lambda: tower("int16"),
}
OF_DSP = (
    "inputs left of a row", "wider than the image", "several vectors of outputs",
    "depthwise of a stride", "depthwise, dilated",
)  # fmt: skip
OF_LONGER = ("window of long rows", "many outputs", "depthwise of several vectors", "subtract")


def named(each: object) -> str | None:
    """The name of a board in a test's, beside its length of vectors."""
    if isinstance(each, Board):
        return "longer" if each is LONGER else each.name
    return None


def require(target: Board) -> None:
    """Skip the test without the tools of a board."""
    if missing := target.missing():
        pytest.skip(f"needs tools: {missing}")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *((target, name) for target in (M55, RVV) for name in LAYERS),
        *((LONGER, name) for name in OF_LONGER),
        *((M4, name) for name in OF_DSP),
    ],
    ids=named,
)
def test_a_layer_gives_the_interpreters_bits(target, name, tmp_path):
    require(target)
    model = tmp_path / "layer.tflite"
    model.write_bytes(LAYERS[name]())
    assert main(["export", str(model), "--to", "c", "--no-test", "-o", str(tmp_path / "c")]) == 0
    inputs = random_inputs(model, RUNS)
    report = run(build(target, exported(tmp_path / "c"), tmp_path / "board"), joined(inputs))
    report.require_sound()
    assert report.outputs == joined(tflm_outputs(model, inputs))


@pytest.mark.parametrize("target", [M55, RVV, board("mps2-an386")], ids=named)
def test_hidden_layers_in_groups_of_channels_give_the_interpreters_bits(target, tmp_path):
    require(target)
    model = tmp_path / "hidden.tflite"
    model.write_bytes(hidden())
    options = ["--to", "c", "--no-test", "--budget", "224", "-o", str(tmp_path / "c")]
    assert main(["export", str(model), *options]) == 0
    inputs = random_inputs(model, RUNS)
    report = run(build(target, exported(tmp_path / "c"), tmp_path / "board"), joined(inputs))
    report.require_sound()
    assert report.outputs == joined(tflm_outputs(model, inputs))


def with_floats(target: Board) -> Board:
    """The board of RISC-V with vectors of floats too."""
    compiler = (each.replace("imac_zve32x", "imafc_zve32f") for each in target.compiler)
    return replace(target, compiler=tuple(compiler))


PAIRS = {
    "M55, floats": (M55, replace(M55, flags=(*M55.flags, "-mcpu=cortex-m55+nomve"))),
    "M55, integers": (
        replace(M55, flags=(*M55.flags, "-mcpu=cortex-m55+nomve.fp")),
        replace(M55, flags=(*M55.flags, "-mcpu=cortex-m55+nomve")),
    ),
    "RISC-V, floats": (with_floats(RVV), board("virt")),
    "RISC-V, integers": (RVV, board("virt")),
    "DSP": (M4, LARGE_M3),
}  # fmt: skip
"""Boards with vectors, of floats or integers alone, or DSP instructions, and the same without."""


@pytest.mark.parametrize("targets", PAIRS)
@pytest.mark.parametrize("rounding", ["single", "even"])
@pytest.mark.parametrize(
    "name", ["rows of vectors", "window of long rows", "several vectors of outputs", "depthwise"]
)
def test_other_roundings_give_the_bits_of_portable_c(name, rounding, targets, tmp_path):
    """The exported test checks outputs that portable C gives on this machine."""
    require(PAIRS[targets][0])
    model = tmp_path / "layer.tflite"
    model.write_bytes(LAYERS[name]())
    folder = tmp_path / "c"
    options = ["--to", "c", "--rounding", rounding, "-o", str(folder)]
    assert main(["export", str(model), *options]) == 0
    inputs = random_inputs(model, RUNS)
    found = [
        run(build(target, exported(folder), tmp_path / text), joined(inputs)).outputs
        for text, target in zip(("vectors", "none"), PAIRS[targets], strict=True)
    ]
    assert found[0] == found[1]
