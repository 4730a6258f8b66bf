"""The application without an operating system, built and run as its Makefile says."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from bench.boards.run import joined, random_inputs, tflm_outputs
from support import tflite_networks as networks
from support.command import main


def exported(model: Path, *options: str) -> Path:
    """Return the folder of the application of an export."""
    folder = model.with_name("c")
    assert main(["export", str(model), "--to", "c", "-o", str(folder), *options]) == 0
    return folder / "examples/bare_metal"


def check(folder: Path, model: Path, processor: str, machine: str) -> None:
    """Check the labels that the application writes for random inputs."""
    inputs = random_inputs(model, 3)
    best = [int(outputs[0].argmax()) for outputs in tflm_outputs(model, inputs)]
    assert labels(folder, inputs, processor, machine) == best


def labels(
    folder: Path, inputs: Sequence[Sequence[np.ndarray]], processor: str, machine: str
) -> list[int]:
    floats = "hard" if processor == "cortex-m55" else "soft"
    make = ["make", "-s", "-C", str(folder), f"CPU={processor}", f"FLOAT={floats}"]
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
    return [int(line[1]) for line in lines]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "keyword.tflite"
    path.write_bytes(networks.keyword())
    return path


@pytest.mark.parametrize(
    ("processor", "machine"),
    [("cortex-m3", "mps2-an385"), ("cortex-m4", "mps2-an386"), ("cortex-m7", "mps2-an500")],
)
def test_a_line_comes_for_each_input(model: Path, processor: str, machine: str) -> None:
    check(exported(model), model, processor, machine)


@pytest.mark.parametrize(
    ("processor", "machine", "psram"),
    [("cortex-m4", "mps2-an386", 0x21000000), ("cortex-m7", "mps2-an500", 0x60000000)],
)
def test_tensors_lie_in_two_memories_of_a_board(
    model: Path, processor: str, machine: str, psram: int
) -> None:
    folder = exported(
        model, "--memory", "sram=512", "--memory", "psram=64KiB", "--boundary", "exclude"
    )
    script = (folder / "memory.ld").read_text()
    assert 'REGION_ALIAS("PSRAM", RAM);' in script
    regions = f"  SRAM (rwx) : ORIGIN = 0x20200000, LENGTH = 4K\n  PSRAM (rwx) : ORIGIN = {psram}"
    script = re.sub(r"REGION_ALIAS.*\n", "", script).replace("LENGTH = 4M\n}", "LENGTH = 2M\n}")
    (folder / "memory.ld").write_text(script.replace("}", f"{regions}, LENGTH = 64K\n}}", 1))
    check(folder, model, processor, machine)
    said = subprocess.run(
        ["arm-none-eabi-nm", folder / "keyword.elf"], capture_output=True, text=True, check=True
    ).stdout
    pairs = re.findall(r"(\w+) b keyword_storage_([a-z]+)", said)
    found = {name: int(at, 16) for at, name in pairs}
    assert found["sram"] == 0x20200000
    assert found["psram"] == psram
    assert 0x20000000 <= found["input"] < 0x20200000


def test_tensors_lie_in_two_memories_of_a_cortex_m55(tmp_path: Path) -> None:
    model = tmp_path / "classifier.tflite"
    model.write_bytes(networks.classifier())
    folder = exported(model, "--memory", "dtcm=8KiB", "--memory", "sram=64KiB")
    regions = (
        "MEMORY {",
        "  FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 512K",
        "  DTCM (rwx) : ORIGIN = 0x20000000, LENGTH = 512K",
        "  RAM (rwx) : ORIGIN = 0x21000000, LENGTH = 2M",
        "  SRAM (rwx) : ORIGIN = 0x21200000, LENGTH = 2M",
        "}",
        "INCLUDE sections.ld",
        "",
    )
    (folder / "memory.ld").write_text("\n".join(regions))
    main = (folder / "main.c").read_text()
    (folder / "main.c").write_text(main.replace("0x40004000", "0x59303000"))
    check(folder, model, "cortex-m55", "mps3-an547")
    said = subprocess.run(
        ["arm-none-eabi-nm", folder / "classifier.elf"], capture_output=True, text=True, check=True
    ).stdout
    pairs = re.findall(r"(\w+) b classifier_storage_([a-z]+)", said)
    assert {name: int(at, 16) for at, name in pairs} == {"dtcm": 0x20000000, "sram": 0x21200000}
