"""ONNX networks as C source on emulated boards: integers and floats, beside ONNX Runtime.

Integers are also compared with what the same source computes on this machine, to the bit.
"""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.planner.sizes import Dimension
from bench.boards.board import board as board_named
from bench.boards.program import build, footprint
from bench.boards.program import exported as subject_of
from bench.boards.run import joined, run
from support.detectors import YOLO
from support.exported_c import Machine, compiled, drawn, exported, written
from support.quantised_onnx import FORMS, assert_within_few_quanta, floats, outputs_of, quantised
from support.tiny_onnx import parse, save, with_random_weights

RUNS = 3
STACK = 512
M0, M3, M4, M7, M55, RISCV = (
    "microbit", "lm3s6965evb", "mps2-an386", "mps2-an500", "mps3-an547", "virt",
)  # fmt: skip


def on_board(export, inputs, board, folder, sizes=None):
    """The outputs of all runs on a board, within the arena and 512 B of stack."""
    subject = subject_of(written(export, folder / "c"), sizes=sizes)
    program = build(board_named(board), subject, folder / "b")
    arrays = [[each[port.port.name] for port in export.interface.inputs] for each in inputs]
    report = run(program, joined(arrays))
    report.require_sound()
    assert report.stack <= STACK
    assert footprint(program).variables == 0
    (port,) = (export.interface.at(sizes) if sizes else export.interface).outputs
    found = np.frombuffer(report.outputs, port.tensor.dtype.label)
    return found.reshape(RUNS, *port.tensor.shape)


@pytest.mark.parametrize(
    ("form", "board"),
    [("qdq, signed", M0), ("qdq, signed", M55), ("qdq, unsigned", M4), ("qlinear", RISCV)],
)
def test_a_quantised_network_gives_what_onnx_runtime_gives(form, board, tmp_path):
    path = quantised(tmp_path, FORMS[form])
    export = exported(path)
    inputs = [drawn(export, seed) for seed in range(RUNS)]
    outputs = on_board(export, inputs, board, tmp_path)
    machine = Machine.of(export, compiled(export, tmp_path / "here"))
    for given, found in zip(inputs, outputs, strict=True):
        assert_within_few_quanta(found, outputs_of(path, export.interface, given)[0])
        (here,) = machine.run(given).values()
        np.testing.assert_array_equal(found, here)


@pytest.mark.parametrize("board", [M3, M7])
def test_a_network_of_floats_gives_what_onnx_runtime_gives(board, tmp_path):
    path = floats(tmp_path)
    export = exported(path)
    inputs = [drawn(export, seed) for seed in range(RUNS)]
    outputs = on_board(export, inputs, board, tmp_path)
    for given, found in zip(inputs, outputs, strict=True):
        (expected,) = outputs_of(path, export.interface, given)
        np.testing.assert_allclose(found, expected, 0, 1e-5 * np.abs(expected).max())


SEQUENCE = """(float[frames,1,6] x) => (y) <float[2,24,6] w, float[2,24,8] r, float[2,48] b> {
    y, h = GRU<hidden_size=8, direction="bidirectional", linear_before_reset=1>(x, w, r, b) }"""


@pytest.mark.parametrize(("board", "frames"), [(M3, 20), (M4, 1), (M55, 7), (RISCV, 13)])
def test_a_network_for_a_range_of_sizes_gives_what_it_gives_here(board, frames, tmp_path):
    path = save(tmp_path, with_random_weights(parse(SEQUENCE)))
    export = exported(path, reading=Reading({"frames": Dimension("frames", 1, 20)}))
    machine, sizes = Machine.of(export, compiled(export, tmp_path / "here")), {"frames": frames}
    random = np.random.default_rng(frames)
    (port,) = export.interface.at(sizes).inputs
    inputs = [{"x": random.random(port.tensor.shape, np.float32)} for _ in range(RUNS)]
    outputs = on_board(export, inputs, board, tmp_path, sizes)
    for given, found in zip(inputs, outputs, strict=True):
        (here,) = machine.run(given, sizes).values()
        np.testing.assert_allclose(found, here, 0, 1e-5)


def test_boxes_that_a_run_counts_are_those_of_this_machine(tmp_path):
    export = exported(save(tmp_path, parse(YOLO)))
    machine = Machine.of(export, compiled(export, tmp_path / "here"))
    inputs = [drawn(export, seed) for seed in range(RUNS)]
    outputs = on_board(export, inputs, M4, tmp_path, {"kept": 30})
    for given, found in zip(inputs, outputs, strict=True):
        (here,) = machine.run(given, {"kept": 30}).values()
        assert len(here)
        np.testing.assert_array_equal(found[: len(here)], here)
