"""Our runtime beside others on one model, each in fresh processes, round by round."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.errors import EngineError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.contest.engines import OURS
from arenite.pipeline.contest.rounds import Contest, measure, outputs_of
from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import random_inputs
from arenite.planner.importers import model_format
from arenite.runtime import Session
from harness.figures import Spread, paired_ratios
from harness.inputs import dims_of

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

    Raises:
        EngineError: An engine does not run the model.
    """
    files: Mapping[str, Path] = {
        OURS: entry.program, **dict.fromkeys(engines, entry.model), **(peers or {}),
    }  # fmt: skip
    return run_engines(
        entry.model_format, files, entry.inputs[0], entry.program.parent, num_rounds,
        threads=threads, may_drop=may_drop, seconds=seconds,
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
) -> dict[str, Raced]:
    """Run engines, by the file that each loads, in turn, in fresh processes.

    Raises:
        EngineError: One does not run its file.
    """
    inputs = folder / "inputs.npz"
    np.savez(inputs, *arrays)
    contest = Contest(kind, dict(files), inputs, threads, seconds, may_drop)
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
