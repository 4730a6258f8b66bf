"""Instructions of an inference on emulated ARM processors, ours beside other engines."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import random_inputs
from arenite.strategies import find
from bench.arm.code import KINDS
from bench.arm.emulation import PROCESSORS, Counted, here, ours, theirs
from bench.harness.contest import TABLE, Asked, MissingInputsError, Row, contest, note, option
from bench.harness.engines import OURS, converted_peers
from bench.harness.inputs import reading_of, shared_tflite, zoo_files

_NAMES: Final = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "vww_96_int8", "kws_ref_model",
    "pretrainedResnet_quant", "person_detect", "vww_96_float", "pretrainedResnet",
)  # fmt: skip
_NETWORKS: Final = ("mobilenet-v1", "mobilenet-v2")
_RATIOS, _KINDS = "Beside other engines", "Million instructions of an inference by kind"
_FUNCTIONS, _CLOCK = "Hot functions", "Estimates beside the clock"
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
        _RATIOS: {"model": "", "processor": "", "ours, million": ".2f", "other engine": "",
                  "instructions": ".2f", "estimated cycles": ".2f", "loading": ".2f",
                  "memory": ".2f"},
        _KINDS: {"model": "", "processor": "", "engine": "", "all": ".2f",
                 **dict.fromkeys(KINDS, ".2f"), "loading": ".2f", "start": ".0f",
                 "million cycles": ".2f", "MB": ".1f"},
        _FUNCTIONS: {"model": "", "processor": "", "function": "", "million": ".2f",
                     "share": ".0%", "cycles / instruction": ".2f"},
        _CLOCK: {"model": "", "million instructions": ".1f", "million cycles": ".1f", "ms": ".3f",
                 "time / instructions": ".2f", "time / cycles": ".2f"},
    },
    models="8-bit and float models of ../shared, networks of the zoo",
    options=[
        option("--processor", action="append", choices=PROCESSORS, help="default: all"),
        option("--ours", action="store_true", help="without other engines"),
        option("--clock", metavar="MODEL", help="on x86-64 instead, beside the clock; "
               "name the processor as llvm-mca does, znver4 for example"),
    ],
)  # fmt: skip
def arm(asked: Asked) -> Iterator[Row]:
    """Count instructions of an inference on emulated ARM processors.

    `make test-arm` cross-compiles the runtime first. Other engines are their aarch64 wheels, run
    by a Python of Debian 12 that is unpacked under `build/arm/peers`; they choose kernels by the
    processor that `/proc/cpuinfo` states. QEMU counts from mark to mark: the start of the process
    with its imports, loading with packing (what the first run takes beyond others), and runs.
    Memory is what is resident at most beyond the start. Cycles are estimates of `llvm-mca` for the
    blocks that 90 % of the instructions belong to, as if each repeated, without cache misses and
    wrong predictions. Ratios are ours over the other's.
    """
    found = [*shared_tflite(_NAMES), *zoo_files(_NETWORKS, asked.folder)]
    if asked.given.clock is not None:
        yield from _clock(asked, list(asked.each(found, lambda path: _subject(asked, path))))
        return
    for rows in asked.each(found, lambda path: list(_rows(asked, _subject(asked, path)))):
        yield from rows


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
    return _Subject(model.stem, model_format, program, inputs, tuple(entries), runs)


def _rows(asked: Asked, subject: _Subject) -> Iterator[Row]:
    for processor in asked.given.processor or PROCESSORS:
        note(f"{subject.name} on {processor}")
        row: Row = {"model": subject.name, "processor": processor}
        counted = {OURS: ours(processor, subject.program, subject.runs)}
        for engine, path in subject.entries:
            try:
                counted[engine] = theirs(
                    processor, subject.model_format, engine, path, subject.inputs, subject.runs
                )
            except MissingInputsError as error:
                note(f"{engine} is left out: {error}")
        cycles = {engine: each.cycles() for engine, each in counted.items()}
        for engine, each in counted.items():
            yield {**row, TABLE: _KINDS, "engine": engine, **_figures(each, cycles[engine])}
        own = counted[OURS]
        for engine, each in counted.items():
            if engine != OURS:
                yield {
                    **row, TABLE: _RATIOS, "ours, million": own.per_run / 1e6,
                    "other engine": engine, "instructions": own.per_run / each.per_run,
                    "estimated cycles": cycles[OURS] / cycles[engine],
                    "loading": own.loading / each.loading,
                    "memory": own.added_bytes / each.added_bytes,
                }  # fmt: skip
        for name, number, spent in own.functions()[:4]:
            yield {**row, TABLE: _FUNCTIONS, "function": name[:80], "million": number / 1e6,
                   "share": number / own.per_run, "cycles / instruction": spent}  # fmt: skip


def _figures(counted: Counted, cycles: int) -> Row:
    return {
        "all": counted.per_run / 1e6,
        **{kind: number / 1e6 for kind, number in counted.kinds().items()},
        "loading": counted.loading / 1e6, "start": counted.starting / 1e6,
        "million cycles": cycles / 1e6, "MB": counted.added_bytes / 1e6,
    }  # fmt: skip


def _clock(asked: Asked, subjects: list[_Subject]) -> Iterator[Row]:
    """Yield the time by instruction and by cycle, each over the median of all models."""
    found = []
    for subject in subjects:
        counted, ns = here(subject.program, subject.inputs, subject.runs, asked.given.clock)
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
