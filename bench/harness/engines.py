"""Our runtime beside other engines, each in fresh processes, round by round."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.pipeline.base.errors import EngineError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.contest.engines import OURS
from arenite.pipeline.contest.rounds import Contest as Rounds
from arenite.pipeline.contest.rounds import measure, outputs_of
from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import random_inputs
from arenite.planner.importers import load, model_format
from arenite.runtime import Session
from bench.harness.contest import note
from bench.harness.inputs import dims_of
from bench.harness.measuring import Spread, paired_ratios

__all__ = ["ONNXRUNTIME", "OURS", "EngineError", "Entry", "Raced", "compiled_entry", "race"]

ONNXRUNTIME = "onnxruntime"
XNNPACK = "litert-xnnpack"
OPPONENTS = {"onnx": ONNXRUNTIME, "tflite": XNNPACK}
"""The engine that we are compared with first, by the model's format."""

_SECONDS = 0.5
"""That each process measures."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that is built for our runtime, with inputs for all.

    Attributes:
        model: The file.
        model_format: `onnx` or `tflite`.
        program: The file that our runtime loads.
        num_steps: Of the program.
        backends: Steps that each backend of ours runs.
        arena_bytes: Of our arena.
        inputs: Random arrays by seed, in the model's order.
    """

    model: Path
    model_format: str
    program: Path
    num_steps: int
    backends: dict[str, int]
    arena_bytes: int
    inputs: tuple[list[NDArray[Any]], ...]

    @property
    def opponent(self) -> str:
        """The engine that we are compared with first."""
        return OPPONENTS[self.model_format]


@dataclass(frozen=True, slots=True)
class Raced:
    """One engine in all rounds.

    Attributes:
        engine: Its name.
        latencies_ms: The median of each round's process.
        peaks_bytes: Peak resident memory of each.
        outputs: Of the first round.
    """

    engine: str
    latencies_ms: list[float]
    peaks_bytes: list[int]
    outputs: tuple[NDArray[Any], ...]

    @property
    def peak_rss(self) -> int:
        """Median peak in bytes."""
        return int(statistics.median(self.peaks_bytes))

    def latency_to(self, other: "Raced") -> Spread:
        """Return the ratio of our latency to another's, round by round."""
        return paired_ratios(self.latencies_ms, other.latencies_ms)


def compiled_entry(model: Path, folder: Path, num_seeds: int = 1) -> Entry:
    """Build a model for our runtime, with random inputs of some seeds, from 0."""
    program = folder / "model.arena"
    built = build_program(model, program, reading=Reading(dims_of(model))).program
    inputs = tuple(list(random_inputs(built, seed).values()) for seed in range(num_seeds))
    with Session(program) as session:
        backends = dict(Counter(session.backends()))
        arena = session.arena_bytes
    return Entry(model, model_format(model), program, len(built.steps), backends, arena, inputs)


def race(
    entry: Entry,
    engines: Sequence[str],
    num_rounds: int,
    *,
    threads: int = 1,
    peers: Mapping[str, Path] | None = None,
    may_drop: bool = False,
    seconds: float = _SECONDS,
    by_processor_time: bool = False,
) -> dict[str, Raced]:
    """Run our program and the model in other engines, in turn, on the inputs of seed 0.

    Args:
        entry: The model.
        engines: Beside ours.
        num_rounds: Of fresh processes.
        threads: Of each engine.
        peers: Further engines, with the files that they load.
        may_drop: Leave out an engine that does not run the model.
        seconds: That each process measures.
        by_processor_time: Whether latencies are of processor time.

    Raises:
        EngineError: An engine does not run the model.
    """
    files: Mapping[str, Path] = {
        OURS: entry.program, **dict.fromkeys(engines, entry.model), **(peers or {}),
    }  # fmt: skip
    return run_engines(
        entry.model_format, files, entry.inputs[0], entry.program.parent, num_rounds,
        threads=threads, may_drop=may_drop, seconds=seconds, by_processor_time=by_processor_time,
    )  # fmt: skip


def run_engines(
    kind: str,
    files: Mapping[str, Path],
    arrays: Sequence[NDArray[Any]],
    folder: Path,
    num_rounds: int,
    *,
    threads: int = 1,
    may_drop: bool = False,
    seconds: float = _SECONDS,
    by_processor_time: bool = False,
) -> dict[str, Raced]:
    """Run engines, by the file that each loads, in turn, in fresh processes.

    Raises:
        EngineError: One does not run its file.
    """
    inputs = folder / "inputs.npz"
    np.savez(inputs, *arrays)
    contest = Rounds(kind, dict(files), inputs, threads, seconds, may_drop, by_processor_time)
    found = {}
    for each in measure(contest, num_rounds, lambda _number, _engine: None):
        with np.load(outputs_of(contest, each.engine)) as stored:
            outputs = tuple(stored[name] for name in stored.files)
        found[each.engine] = Raced(
            each.engine,
            [sample.median_ns / 1e6 for sample in each.samples],
            [sample.peak_rss_bytes for sample in each.samples],
            outputs,
        )
    return found


PEERS = ("ncnn", "mnn")
_NEEDS = {"ncnn": ("ncnn", "pnnx"), "mnn": ("MNN", "_tools")}
CONVERSION_S = 600
_LONGEST = 200


def converted_peers(model: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the peers that are installed and take a model, and the file that each loads."""
    for peer in PEERS:
        missing = [package for package in _NEEDS[peer] if find_spec(package) is None]
        if missing:
            note(f"{peer} is left out: {', '.join(missing)} is not installed")
            continue
        place = folder / peer
        place.mkdir()
        wanted = place / ("model.ncnn.param" if peer == "ncnn" else "model.mnn")
        command = _pnnx(model, place) if peer == "ncnn" else _mnnconvert(model, wanted)
        try:
            done = subprocess.run(
                command,
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
                timeout=CONVERSION_S,
            )
        except subprocess.TimeoutExpired:
            note(
                f"{peer} is left out: it takes more than {CONVERSION_S} s to convert {model.name}"
            )
            continue
        if done.returncode or not wanted.is_file():
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
            note(f"{peer} is left out: it does not convert {model.name}: {said[-1][:_LONGEST]}")
            continue
        yield peer, wanted


def _pnnx(model: Path, place: Path) -> list[str]:
    # Its package imports PyTorch, the program inside it does not.
    (folder,) = find_spec("pnnx").submodule_search_locations  # type: ignore[union-attr,misc]
    wanted = place / "model.onnx"
    onnx.save(without_given_inputs(onnx.load(model)), wanted)
    program = load(model, dims=dims_of(model))
    shapes = (
        str(list(port.shape(program.tensors[port.tensor].shape))).replace(" ", "") + "f32"
        for port in program.inputs
    )
    return [f"{folder}/pnnx", wanted.name, f"inputshape={','.join(shapes)}", "fp16=0"]


def without_given_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that does not list constants among its inputs, as old files do."""
    constants = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model


def _mnnconvert(model: Path, wanted: Path) -> list[str]:
    # Its command tells its makers of each conversion, the module behind it does not.
    arguments = [
        "mnnconvert", "-f", "ONNX", "--modelFile", str(model.resolve()), "--MNNModel", str(wanted),
        "--bizCode", "bench", "--useOriginRNNImpl",
    ]  # fmt: skip
    return [sys.executable, "-c", f"import _tools; _tools.mnnconvert({arguments!r})"]


BUDGETS_KIB: Final = (
    2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 96, 128, 192, 256, 512, 1024, 2048,
)  # fmt: skip
"""Fast memories that it is asked about."""


def tigris_bytes(program: str | None, path: Path) -> int:
    """Return the least fast and slow memory that TiGrIS states, 0 if it states none.

    Args:
        program: Its program; None if it is not asked.
        path: The model.
    """
    if program is None:
        return 0
    found = []
    for budget in BUDGETS_KIB:
        done = subprocess.run(
            [program, "analyze", "-m", f"{budget}K", "--json", path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            continue
        stated = json.loads(done.stdout)
        if stated["fast"]["verdict"] in ("ok", "tiled") and stated["slow"]["fits"]:
            found.append(stated["fast"]["scheduled_peak_bytes"] + stated["slow"]["peak_bytes"])
    return min(found, default=0)
