"""Instructions of an inference under emulation do not grow.

Program and compiler decide them, so that each run has the same number.
"""

import subprocess
from pathlib import Path

import onnx
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.runtime.rewrites import Activations
from arenite.strategies import find
from bench.arm.emulation import ours
from bench.arm.tools import TRIPLETS, qemu
from bench.harness.contest import MissingInputsError
from bench.zoo import NETWORKS
from support import small_networks, tflite_networks

ALLOWED_GROWTH = 1.02
COMPILER = "12"
"""Release of GCC, Debian 12's, whose code has these numbers of instructions."""
COUNTS = {
    "detector": {"cortex-a7": 6_660_747, "cortex-a72": 1_082_010, "neoverse-n1": 707_326},
    "autoencoder": {"cortex-a7": 28_215, "cortex-a72": 16_755, "neoverse-n1": 13_559},
    "mobilenet-v1-0.25-96": {
        "cortex-a7": 4_381_595,
        "cortex-a72": 2_732_757,
        "neoverse-n1": 2_729_551,
    },
    "mobilenet-v1-0.25-96, 16 bits": {
        "cortex-a7": 16_147_726,
        "cortex-a72": 3_374_261,
        "neoverse-n1": 1_899_986,
    },
    "lstm": {"cortex-a7": 279_956, "cortex-a72": 97_606, "neoverse-n1": 95_926},
}
"""Write down what the test prints if a change is worth its instructions, or saves some."""


def program_of(name: str, folder: Path) -> Path:
    name, _, halves = name.partition(", ")
    if name in NETWORKS:
        onnx.save(NETWORKS[name](), path := folder / "model.onnx")
    elif name == "lstm":
        onnx.save(small_networks.network(name), path := folder / "model.onnx")
    else:
        path = folder / "model.tflite"
        path.write_bytes(getattr(tflite_networks, name)())
    program = folder / "model.arena"
    reading = Reading(activations=Activations.FP16 if halves else None)
    build_program(path, program, reading=reading, strategy=find("greedy-by-size"))
    return program


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("processor", ["cortex-a7", "cortex-a72", "neoverse-n1"])
@pytest.mark.parametrize("name", COUNTS)
def test_an_inference_takes_no_more_instructions_than_recorded(tmp_path, name, processor):
    arch = "arm" if processor == "cortex-a7" else "aarch64"
    release = subprocess.run(
        [f"{TRIPLETS[arch]}-gcc", "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if release != COMPILER:
        pytest.skip(f"recorded with GCC {COMPILER}, not {release}")
    try:
        qemu(arch)
    except MissingInputsError as error:
        pytest.skip(str(error))
    counted = ours(processor, program_of(name, tmp_path), 3, arch).per_run
    recorded = COUNTS[name][processor]
    print(f"{name} on {processor}: {counted} instructions, recorded {recorded}")  # noqa: T201
    assert counted <= ALLOWED_GROWTH * recorded
