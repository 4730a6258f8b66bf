"""ONNX networks with quantised numbers as C, beside ONNX Runtime."""

import subprocess
from pathlib import Path

import pytest

from arenite.cli.main import main
from support.exported_c import Machine, compiled, drawn, exported
from support.quantised_onnx import FORMS, assert_within_few_quanta, outputs_of, quantised


@pytest.mark.parametrize("form", FORMS)
def test_a_quantised_network_gives_what_onnx_runtime_gives_within_few_quanta(
    form: str, tmp_path: Path
) -> None:
    path = quantised(tmp_path, form)
    export = exported(path)
    assert "conv_s8" in export.kernels
    assert main(["export", str(path), "--to", "c", "-o", str(tmp_path / "made")]) == 0
    done = subprocess.run(["make", "-C", tmp_path / "made", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 1)
    (expected,) = outputs_of(path, export.interface, inputs)
    (found,) = machine.run(inputs).values()
    assert_within_few_quanta(found, expected)
