"""The flash and the cycles that exports state are those of a Cortex-M4."""

import re
import shutil

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from bench.boards.board import board
from bench.boards.cycles import executed
from bench.boards.kernel_sizes import TABLE, measured
from bench.boards.program import build, exported, footprint
from bench.boards.run import joined, random_inputs, tflm_outputs
from support.command import main
from support.shared_material import shared


def test_the_table_of_functions_is_that_of_the_compiler():
    """The table is of GCC 12.2; another may differ by a tenth."""
    rows = (line.split() for line in TABLE.read_text().splitlines()[1:])
    stated = {name: int(size) for name, size in rows}
    found = measured()
    assert stated.keys() == found.keys(), "python -m bench.boards.kernel_sizes writes it"
    off = {
        name: size for name, size in found.items() if abs(size - stated[name]) > 24 + size // 10
    }
    assert not off, "python -m bench.boards.kernel_sizes writes it"


@pytest.mark.skipif(shutil.which("llvm-mc-19") is None, reason="needs llvm-19")
@pytest.mark.parametrize(("name", "flash"), [("kws_ref_model", "1MiB"), ("vww_96_int8", "100KiB")])
def test_estimates_are_near_what_a_board_takes(name, flash, tmp_path):
    model = shared(f"models/tflite/{name}.tflite")
    folder = tmp_path / "c"
    options = ["--to", "c", "-o", str(folder), "--flash", flash, "--no-test"]
    assert main(["export", str(model), *options]) == 0
    header = (folder / f"{name}.h").read_text()
    weights, code, cycles = (
        int(re.search(rf"_{each} (\d+)", header)[1])
        for each in ("WEIGHT_BYTES", "CODE_BYTES", "CYCLES")
    )
    inputs = random_inputs(model, 1)
    program = build(board("mps2-an386"), exported(folder), tmp_path / "board")
    found = executed(program, joined(inputs))
    outputs = np.fromfile(tmp_path / "board/outputs", np.uint8).tobytes()
    assert outputs == joined(tflm_outputs(model, inputs))
    assert footprint(program).flash == pytest.approx(weights + code, rel=0.02)
    assert found.cycles().total() == pytest.approx(cycles, rel=0.1)
