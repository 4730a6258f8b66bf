"""Instructions of an inference on emulated ARM processors, ours beside other engines."""

import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import random_inputs
from arenite.runtime import Session
from arenite.runtime.rewrites import Activations
from arenite.strategies import find
from bench.arm.code import KINDS
from bench.arm.emulation import PROCESSORS, Counted, here_timed, ours, outputs, theirs
from bench.harness.contest import TABLE, Asked, MissingInputsError, Row, contest, note, option
from bench.harness.engines import OURS, converted_peers
from bench.harness.inputs import reading_of, shared_onnx, shared_tflite, zoo_files
from bench.quantised import quantised_file

MODELS: Final = {
    "tf2_mobilenet_v2_1.0_224_ptq": "MobileNet v2, 8 bits",
    "mobilenet_v1_0.5_160_quant": "MobileNet v1, 0.5, 160, 8 bits",
    "vww_96_int8": "visual wake words, 8 bits",
    "kws_ref_model": "keyword spotting, 8 bits",
    "pretrainedResnet_quant": "ResNet-8, 8 bits",
    "person_detect": "person detection, 8 bits",
    "resnet50-int8": "ResNet-50, 8 bits",
    "vww_96_float": "visual wake words, fp32",
    "pretrainedResnet": "ResNet-8, fp32",
}
"""Names of files; a zoo's network in 8 bits among those of `../shared`."""
_NETWORKS: Final = (
    "mobilenet-v1", "mobilenet-v2", "mobilenet-v3", "efficientnet-b0", "resnet50", "inception-v3",
    "unet", "yolov8n", "bert-mini", "deit-tiny", "lstm", "gru", "decoder", "temporal", "vocoder",
)  # fmt: skip
_SHARED_ONNX: Final = "ultraface_rfb320"
_RATIOS, _KINDS = "Beside other engines", "Million instructions of an inference by kind"
_FUNCTIONS, _CLOCK = "Hot functions", "Estimates beside the clock"
_BOARDS: Final = "On a Raspberry Pi"
_HALVES: Final = "16-bit floats beside 32"
_OF_FLOATS: Final = (
    "mobilenet-v1", "mobilenet-v2", "mobilenet-v3", "efficientnet-b0", "resnet50", "bert-mini",
)  # fmt: skip
_CLOCKS: Final = {
    "Zero 2 W": ("cortex-a53", 1.0e9), "Pi 3": ("cortex-a53", 1.2e9),
    "Pi 4": ("cortex-a72", 1.5e9), "Pi 5": ("neoverse-n1", 2.4e9),
}  # fmt: skip
"""Processor and cycles a second of each board, of its slowest model."""
_HOT: Final = 4
_PEERS: Final = {"tflite": ("litert-xnnpack",), "onnx": ("onnxruntime",)}


@dataclass(frozen=True, slots=True)
class _Subject:
    """A model, built for our runtime, and the files that other engines load."""

    name: str
    model_format: str
    program: Path
    inputs: Path
    entries: tuple[tuple[str, Path], ...]
    runs: int


@contest(
    {
        _BOARDS: {"model": "", "arena, B": "", "weights, B": "",
                  **{f"{board}, ms": ".1f" for board in _CLOCKS}},
        _RATIOS: {"model": "", "other engine": "",
                  **{f"{figure} {name}": ".2f" for figure in ("instructions,", "cycles,")
                     for name in PROCESSORS},
                  "loading": ".2f", "memory": ".2f"},
        _KINDS: {"model": "", "processor": "", "engine": "", "all": ".2f",
                 **dict.fromkeys(KINDS, ".2f"), "loading": ".2f", "start": ".0f",
                 "million cycles": ".2f", "MB": ".1f"},
        _FUNCTIONS: {"model": "", "function": "",
                     **{f"share, {name}": ".0%" for name in PROCESSORS},
                     **{f"cycles / instruction, {name}": ".2f" for name in PROCESSORS}},
        _CLOCK: {"model": "", "million instructions": ".1f", "million cycles": ".1f", "ms": ".3f",
                 "time / instructions": ".2f", "time / cycles": ".2f"},
        _HALVES: {"model": "", "instructions": ".1f", "16 bits": ".1f", "ratio": ".2f",
                  "cycles": ".2f", "ratio, converted": ".2f", "error": ".1e",
                  "error, converted": ".1e"},
    },
    models="8-bit and float models of ../shared, networks of the zoo",
    options=[
        option("--processor", action="append", choices=PROCESSORS, help="default: all"),
        option("--ours", action="store_true", help="without other engines"),
        option("--clock", metavar="MODEL", help="on x86-64 instead, beside the clock; "
               "name the processor as llvm-mca does, znver4 for example"),
        option("--halves", action="store_true", help="programs of 16-bit floats beside 32"),
    ],
)  # fmt: skip
def arm(asked: Asked) -> Iterator[Row]:
    """Count instructions of an inference on emulated ARM processors.

    `make arm-wheels` cross-compiles the runtime first. Other engines are their aarch64 wheels, run
    by a Python of Debian 12 that is unpacked under `build/arm`; they choose kernels by the
    processor that `/proc/cpuinfo` states. QEMU counts from mark to mark: the start of the process
    with its imports, loading with packing (what the first run takes beyond others), and runs.
    Memory is what is resident at most beyond the start. Cycles are estimates of `llvm-mca` for the
    blocks that 90 % of the instructions belong to, as if each repeated, without cache misses and
    wrong predictions. Ratios are ours over the other's; times on a Raspberry Pi are these cycles
    at the clock of the board. 16-bit floats are computed on Neoverse N1 and converted on
    Cortex-A72; their errors are the largest difference from outputs of 32 bits over the largest.
    """
    if asked.given.halves:
        found = (
            *(path for path in (*shared_tflite(tuple(MODELS)), *shared_onnx()) if _is_float(path)),
            *zoo_files(_OF_FLOATS, asked.folder),
        )
        yield from asked.each(found, lambda path: _halves(asked, path))
        return
    if asked.given.clock is not None:
        yield from _clock(
            asked, list(asked.each(_found(asked.folder), lambda path: _subject(asked, path)))
        )
        return
    for rows in asked.each(
        _found(asked.folder), lambda path: list(_rows(asked, _subject(asked, path)))
    ):
        yield from rows


def _found(folder: Path) -> Iterator[Path]:
    yield from shared_tflite(tuple(MODELS))
    yield from (path for path in shared_onnx() if path.stem == _SHARED_ONNX)
    yield from zoo_files(_NETWORKS, folder)
    yield quantised_file("resnet50", folder)


def _is_float(path: Path) -> bool:
    return path.stem == _SHARED_ONNX or MODELS.get(path.stem, "").endswith("fp32")


def _halves(asked: Asked, model: Path) -> Row:
    note(f"16-bit floats of {model.stem}")
    programs = []
    for kept in (Activations.FP32, Activations.FP16):
        programs.append(program := asked.folder / f"{model.stem}-{kept}.arena")
        reading = replace(reading_of(model), activations=kept)
        built = build_program(model, program, reading=reading, strategy=find("best"))
    plain, halved = programs
    feeds = list(random_inputs(built.program, 0).values())
    tensors = built.program.tensors
    sizes = [tensors[name].num_elements for name in built.program.output_tensors]
    cases = [("neoverse-n1", plain), ("neoverse-n1", halved), ("cortex-a72", halved)]
    counts = [ours(processor, program, 1) for processor, program in cases]
    raw = [outputs(processor, program, feeds, asked.folder) for processor, program in cases]
    exact, *rounded = [
        np.split(np.frombuffer(each, np.float32), np.cumsum(sizes)[:-1]) for each in raw
    ]
    computed, converted = (
        max(
            float(np.abs(ours - right).max() / np.abs(right).max())
            for ours, right in zip(each, exact, strict=True)
        )
        for each in rounded
    )
    return {
        TABLE: _HALVES, "model": MODELS.get(model.stem, model.stem),
        "instructions": counts[0].per_run / 1e6, "16 bits": counts[1].per_run / 1e6,
        "ratio": counts[1].per_run / counts[0].per_run,
        "cycles": counts[1].cycles() / counts[0].cycles(),
        "ratio, converted": counts[2].per_run / counts[0].per_run,
        "error": computed, "error, converted": converted,
    }  # fmt: skip


def _subject(asked: Asked, model: Path) -> _Subject:
    program = asked.folder / f"{model.stem}.arena"
    built = build_program(model, program, reading=reading_of(model), strategy=find("best"))
    inputs = asked.folder / f"{model.stem}.npz"
    np.savez(inputs, *random_inputs(built.program, 0).values())
    model_format = model.suffix[1:]
    entries: list[tuple[str, Path]] = []
    if not asked.given.ours and asked.given.clock is None:
        entries = [(each, model) for each in _PEERS[model_format]]
        if model_format == "onnx":
            folder = asked.folder / model.stem
            folder.mkdir()
            entries += converted_peers(model, folder)
    runs = 10 if model.stat().st_size < 1 << 20 else 1
    name = MODELS.get(model.stem, model.stem)
    return _Subject(name, model_format, program, inputs, tuple(entries), runs)


def _rows(asked: Asked, subject: _Subject) -> Iterator[Row]:
    counted: dict[tuple[str, str], Counted] = {}
    for processor in asked.given.processor or PROCESSORS:
        note(f"{subject.name} on {processor}")
        counted[processor, OURS] = ours(processor, subject.program, subject.runs)
        for engine, path in subject.entries:
            try:
                counted[processor, engine] = theirs(
                    processor, subject.model_format, engine, path, subject.inputs, subject.runs
                )
            except MissingInputsError as error:
                note(f"{engine} is left out: {error}")
    yield from _ratios(subject.name, counted)
    yield from _hot(subject.name, counted)
    with Session(subject.program) as session:
        held = session.memory()
    yield {
        TABLE: _BOARDS, "model": subject.name,
        "arena, B": held.memories, "weights, B": held.weights,
        **{f"{board}, ms": 1e3 * counted[processor, OURS].cycles() / clock
           for board, (processor, clock) in _CLOCKS.items() if (processor, OURS) in counted},
    }  # fmt: skip
    for (processor, engine), each in counted.items():
        yield {TABLE: _KINDS, "model": subject.name, "processor": processor, "engine": engine,
               **_figures(each)}  # fmt: skip


def _ratios(model: str, counted: Mapping[tuple[str, str], Counted]) -> Iterator[Row]:
    """Yield our figures over each other engine's; of loading and memory the largest ratio."""
    for engine in dict.fromkeys(engine for _, engine in counted if engine != OURS):
        pairs = {
            processor: (counted[processor, OURS], counted[processor, engine])
            for processor in PROCESSORS
            if (processor, engine) in counted
        }
        yield {
            TABLE: _RATIOS, "model": model, "other engine": engine,
            **{f"instructions, {name}": own.per_run / other.per_run
               for name, (own, other) in pairs.items()},
            **{f"cycles, {name}": own.cycles() / other.cycles()
               for name, (own, other) in pairs.items()},
            "loading": max(own.loading / other.loading for own, other in pairs.values()),
            "memory": max(own.added_bytes / other.added_bytes for own, other in pairs.values()),
        }  # fmt: skip


def _hot(model: str, counted: Mapping[tuple[str, str], Counted]) -> Iterator[Row]:
    """Yield our hot functions: four of each processor."""
    rows: dict[str, Row] = {}
    for processor in PROCESSORS:
        if (processor, OURS) in counted:
            own = counted[processor, OURS]
            for name, number, cycles in own.functions()[:_HOT]:
                row = rows.setdefault(
                    name, {TABLE: _FUNCTIONS, "model": model, "function": _short(name)}
                )
                row[f"share, {processor}"] = number / own.per_run
                row[f"cycles / instruction, {processor}"] = cycles
    yield from rows.values()


def _short(function: str) -> str:
    """Return a function's name without its result, parameters and processor."""
    for _ in range(function.count("(")):  # one in another
        function = re.sub(r"\([^()]*\)( const)?", "", function)
    name = re.sub(r"\bN_\w+::|^(\w+ )+|(?<=[0-9])ul", "", function)
    return f"`{name}`"


def _figures(counted: Counted) -> Row:
    return {
        "all": counted.per_run / 1e6,
        **{kind: number / 1e6 for kind, number in counted.kinds().items()},
        "loading": counted.loading / 1e6, "start": counted.starting / 1e6,
        "million cycles": counted.cycles() / 1e6, "MB": counted.added_bytes / 1e6,
    }  # fmt: skip


def _clock(asked: Asked, subjects: list[_Subject]) -> Iterator[Row]:
    """Yield the time by instruction and by cycle, each over the median of all models."""
    found = []
    for subject in subjects:
        counted, ns = here_timed(subject.program, subject.inputs, subject.runs, asked.given.clock)
        found.append((subject.name, counted.per_run, counted.cycles(), ns))
    by_instruction = statistics.median(ns / count for _, count, _, ns in found)
    by_cycle = statistics.median(ns / cycles for _, _, cycles, ns in found)
    for name, count, cycles, ns in found:
        yield {
            TABLE: _CLOCK, "model": name, "million instructions": count / 1e6,
            "million cycles": cycles / 1e6, "ms": ns / 1e6,
            "time / instructions": ns / count / by_instruction,
            "time / cycles": ns / cycles / by_cycle,
        }  # fmt: skip
