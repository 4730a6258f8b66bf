"""Instructions of an inference on emulated ARM processors, ours beside other engines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import random_array
from arenite.runtime import Session
from arenite.strategies import find
from bench.arm.emulation import PROCESSORS, Emulator
from bench.harness.contest import TABLE, Asked, MissingInputsError, Row, contest, note, option
from bench.harness.engines import converted_peers
from bench.harness.inputs import reading_of, shared_tflite, zoo_files

_NAMES: Final = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "vww_96_int8", "kws_ref_model",
    "pretrainedResnet_quant", "person_detect",
)  # fmt: skip
_NETWORKS: Final = ("mobilenet-v1", "mobilenet-v2", "resnet50")
_COUNTS, _FUNCTIONS = "Million instructions of an inference", "Where ours are"
_PEERS: Final = {"tflite": ("litert-xnnpack",), "onnx": ("onnxruntime",)}


@contest(
    {
        _COUNTS: {"model": "", "processor": "", "ours": ".1f", "best other engine": "",
                  "theirs": ".1f", "ours / theirs": ".2f"},
        _FUNCTIONS: {"model": "", "processor": "", "function": "", "million": ".2f"},
    },
    models="8-bit models of ../shared, networks of the zoo",
    options=[
        option("--processor", action="append", choices=PROCESSORS, help="default: all"),
        option("--ours", action="store_true", help="without other engines"),
        option("--functions", action="store_true", help="count by function, too"),
    ],
)  # fmt: skip
def arm(asked: Asked) -> Iterator[Row]:
    """Count instructions of an inference on emulated ARM processors.

    `make test-arm` cross-compiles the runtime first. QEMU counts: what 2 + N runs of a process
    take beyond 2 runs, divided by N. Other engines are their aarch64 wheels, run by a Python of
    Debian 12 that is unpacked under `build/arm/peers`; they choose kernels by the processor that
    `/proc/cpuinfo` states. Instructions are not time: a vector multiply counts as much as an
    addition of addresses, and caches do not appear.
    """
    found = [*shared_tflite(_NAMES), *zoo_files(_NETWORKS, asked.folder)]
    for rows in asked.each(found, lambda path: list(_rows(asked, path))):
        yield from rows


def _rows(asked: Asked, model: Path) -> Iterator[Row]:
    program = asked.folder / f"{model.stem}.arena"
    build_program(model, program, reading=reading_of(model), strategy=find("best"))
    numbers = np.random.default_rng(0)
    with Session(program) as session:
        arrays = [random_array(numbers, port.dtype, port.shape) for port in session.inputs]
    inputs = asked.folder / f"{model.stem}.npz"
    np.savez(inputs, *arrays)
    runs = 20 if model.stat().st_size < 1 << 20 else 2
    entries = [] if asked.given.ours else [(each, model) for each in _PEERS[model.suffix[1:]]]
    if entries and model.suffix == ".onnx":
        folder = asked.folder / model.stem
        folder.mkdir()
        entries += converted_peers(model, folder)
    for name in asked.given.processor or PROCESSORS:
        emulator = Emulator(name)
        ours = emulator.ours(program, runs)
        best, theirs = _best(emulator, entries, inputs, runs)
        total = ours.total() / 1e6
        yield {
            TABLE: _COUNTS, "model": model.stem, "processor": name, "ours": total,
            "best other engine": best, "theirs": theirs,
            "ours / theirs": None if theirs is None else total / theirs,
        }  # fmt: skip
        for function, count in ours.most_common(8) if asked.given.functions else ():
            yield {TABLE: _FUNCTIONS, "model": model.stem, "processor": name,
                   "function": function[:80], "million": count / 1e6}  # fmt: skip


def _best(
    emulator: Emulator, entries: Sequence[tuple[str, Path]], inputs: Path, runs: int
) -> tuple[str, float | None]:
    """Return the engine that takes fewest instructions, and its millions."""
    counts: dict[str, int] = {}
    for engine, path in entries:
        try:
            counted = emulator.theirs(path.suffix[1:], engine, path, inputs, runs)
        except MissingInputsError as error:
            note(f"{engine} is left out: {error}")
            continue
        counts[engine] = counted.total()
    if not counts:
        return "", None
    best = min(counts, key=lambda engine: counts[engine])
    return best, counts[best] / 1e6
