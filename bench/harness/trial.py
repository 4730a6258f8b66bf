"""One model through the commands: planned, built, loaded, run and compared."""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.contest.engines import ENGINES
from arenite.pipeline.making.programs import with_fixed
from arenite.planner.importers import load, model_format
from arenite.planner.programs.program import Program
from arenite.planner.tensors import TensorKind
from arenite.runtime import Session, SessionPort
from bench.harness.inputs import reading_of

Array: TypeAlias = NDArray[Any]

_NUM_RUNS = 2
_REFERENCES = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack", "litert")}
_MOST = {"float": 1e-4, "8-bit": 0.02, "hybrid": 0.1}
"""Largest difference of an output, relative to its largest number, by how a model computes: in
floats; in integers, whose last quantum is a matter of rounding; or with weights alone of 8 bits,
where LiteRT rounds what it multiplies them with and we do not."""


class Verdict(StrEnum):
    """What became of a model."""

    RIGHT = "right"
    """It runs, and the outputs are the reference's."""
    ALONE = "alone"
    """It runs here, and the reference refuses it."""
    REFUSED = "refused"
    """A command refuses it and says why; no file is written."""
    WRONG = "wrong"
    """It runs, and the outputs differ."""
    UNLOADABLE = "unloadable"
    """A file was written that does not load or run."""
    CRASHED = "crashed"
    """A command ended in neither a result nor a reason."""


FAILURES = frozenset({Verdict.WRONG, Verdict.UNLOADABLE, Verdict.CRASHED})


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a model.

    Attributes:
        model: Its name.
        verdict: In a word.
        steps: How many each backend of ours runs.
        arena_bytes: Of our arena.
        difference: Largest of an output, relative to its largest number; None if nothing was
            compared.
        reason: Why it is not right.
    """

    model: str
    verdict: Verdict
    steps: dict[str, int] = field(default_factory=dict)
    arena_bytes: int = 0
    difference: float | None = None
    reason: str = ""


def trial_of(model: Path) -> Trial:
    """Return what becomes of a model."""
    name = model.parent.name if model.stem == "model" else model.stem
    reading = reading_of(model)
    stated = options_of(reading)
    with tempfile.TemporaryDirectory() as folder:
        plan, program = Path(folder) / "plan.json", Path(folder) / "model.arena"
        commands = (
            ["plan", str(model), "-o", str(plan), *stated],
            ["verify", str(plan), str(model)],
            ["build", str(model), "-o", str(program), *stated],
        )
        for command in commands:
            exit_code, said = run_command(command)
            said = said.replace(f"{model}: ", "")
            if exit_code not in (0, 1) or (exit_code == 1 and not said):
                return Trial(name, Verdict.CRASHED, reason=f"{command[0]}: {said}")
            if exit_code == 1 and command[0] == "verify":
                return Trial(name, Verdict.WRONG, reason=f"verify: {said}")
            if exit_code == 1:
                wrote = program.exists() or (command[0] == "plan" and plan.exists())
                verdict = Verdict.CRASHED if wrote else Verdict.REFUSED
                return Trial(name, verdict, reason=f"{command[0]}: {said}")
        return _run(name, model, reading, program)


def options_of(reading: Reading) -> list[str]:
    """Return the options that state what a model leaves open."""
    words: list[str] = []
    for name, value in reading.dims.items():
        words += ["--dim", f"{name}={value}"]
    for name, shape in reading.shapes.items():
        words += ["--shape", f"{name}={'x'.join(map(str, shape))}"]
    for name, number in reading.values.items():
        words += ["--value", f"{name}={number:g}"]
    return words


def run_command(words: Sequence[str]) -> tuple[int, str]:
    """Run the command as a user does; return its exit code and its last line of complaint."""
    command = [sys.executable, "-m", "arenite", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    exit_code = done.returncode
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return -1, lines[-1]
    return exit_code, re.sub(r"^(Error|error): ", "", lines[-1]) if lines else ""


def _run(name: str, model: Path, reading: Reading, program: Path) -> Trial:
    kind = model_format(model)
    try:
        with Session(program) as session:
            feeds = [_drawn(session.inputs, seed) for seed in range(_NUM_RUNS)]
            own = [list(session.run(each).values()) for each in feeds]
            steps, arena = dict(Counter(session.backends())), session.arena_bytes
    except Exception as error:  # whatever it is, a file was written that does not run
        return Trial(name, Verdict.UNLOADABLE, reason=f"{type(error).__name__}: {error}")
    source = load(
        model, dims=reading.dims, shapes=reading.shapes, values=reading.values, weights=True
    )
    most = _MOST[arithmetic(source)]
    differences, refusal = [], ""
    for reference in _REFERENCES[kind]:
        try:
            theirs = _reference(model, kind, reference, reading, feeds)
        except Exception as error:  # its errors have no common base
            refusal = f"{reference}: {str(error).splitlines()[0] if str(error) else error!r}"
            continue
        differences.append(difference(own, theirs))
    if not differences:
        return Trial(name, Verdict.ALONE, steps, arena, None, refusal)
    least = min(differences)
    verdict = Verdict.RIGHT if least <= most else Verdict.WRONG
    reason = "" if verdict is Verdict.RIGHT else f"more than {most:g}"
    return Trial(name, verdict, steps, arena, least, reason)


def _reference(
    model: Path, kind: str, engine: str, reading: Reading, feeds: Sequence[dict[str, Array]]
) -> list[list[Array]]:
    loaded = ENGINES[kind][engine](model, 1)
    if kind == "onnx":
        given = [with_fixed(model, reading, each) for each in feeds]
        return [loaded.run(list(each.values())) for each in given]
    return [[np.copy(out) for out in loaded.run(list(each.values()))] for each in feeds]


def arithmetic(program: Program) -> str:
    """Return how a model computes: in floats, on integers of 8 bits, or on both."""
    eights = {"int8", "uint8"}
    small = [t for t in program.tensors.values() if t.dtype.label in eights]
    if any(each.kind is not TensorKind.CONSTANT for each in small):
        return "8-bit"
    return "hybrid" if small and program.operator_set.name == "TFLITE" else "float"


def difference(ours: Sequence[Sequence[Array]], theirs: Sequence[Sequence[Array]]) -> float:
    """Return the largest difference of outputs over the runs, relative to the largest of each."""
    largest = 0.0
    for own, other in zip(ours, theirs, strict=True):
        for a, b in zip(own, other, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                return float("inf")
            one, two = a.astype(np.float64), b.astype(np.float64)
            if not np.array_equal(np.isfinite(one), np.isfinite(two)):
                return float("inf")
            scale = max(float(np.abs(two[np.isfinite(two)]).max(initial=0.0)), 1e-12)
            off = np.abs(one - two)[np.isfinite(two)]
            largest = max(largest, float(off.max(initial=0.0)) / scale)
    return largest


def _drawn(ports: Sequence[SessionPort], seed: int) -> dict[str, Array]:
    """Return random inputs: numbers, all integers of 8 bits, small others, truth values."""
    generator = np.random.default_rng(seed)
    drawn: dict[str, Array] = {}
    for port in ports:
        if port.dtype.kind == "f":
            drawn[port.name] = generator.standard_normal(port.shape).astype(port.dtype)
            continue
        low, high = (0, 2)
        if port.dtype.itemsize == 1 and port.dtype.kind in "iu":
            low, high = np.iinfo(port.dtype).min, np.iinfo(port.dtype).max + 1
        drawn[port.name] = np.asarray(generator.integers(low, high, port.shape), port.dtype)
    return drawn
