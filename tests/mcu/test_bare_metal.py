"""The application without an operating system, built and run as its Makefile says."""

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from bench.boards.run import joined, random_inputs, tflm_outputs
from support import tflite_networks as networks
from support.command import main


@pytest.mark.parametrize(
    ("processor", "machine"),
    [("cortex-m3", "mps2-an385"), ("cortex-m4", "mps2-an386"), ("cortex-m7", "mps2-an500")],
)
def test_a_line_comes_for_each_input(tmp_path: Path, processor: str, machine: str) -> None:
    model = tmp_path / "keyword.tflite"
    model.write_bytes(networks.keyword())
    folder = tmp_path / "c"
    assert main(["export", str(model), "--to", "c", "-o", str(folder)]) == 0
    inputs = random_inputs(model, 3)
    best = [int(outputs[0].argmax()) for outputs in tflm_outputs(model, inputs)]
    make = ["make", "-s", "-C", str(folder / "examples/bare_metal"), f"CPU={processor}"]
    subprocess.run(make, check=True, capture_output=True)
    with subprocess.Popen(
        [*make, "run", f"MACHINE={machine}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as emulator:
        assert emulator.stdin is not None
        assert emulator.stdout is not None
        emulator.stdin.write(joined(inputs))
        emulator.stdin.flush()
        lines = [emulator.stdout.readline().decode().split() for _ in inputs]
        emulator.terminate()  # it ends the emulator too
    assert [int(line[1]) for line in lines] == best
