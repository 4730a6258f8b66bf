"""Rounds of fresh processes, one for each engine, and their measurements.

Each process is pinned to as many cores as it has threads, and measured again where other
processes took a core too often.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arenite.pipeline.base.errors import EngineError
from arenite.pipeline.base.observing import SILENT, Observer
from arenite.pipeline.contest.engines import OURS

_LONGEST = 200
"""Most characters of the error message of an engine."""

_MOST_PREEMPTED = (5, 20)
"""Preemptions, and more a second, above which a sample is measured again."""
_NUM_TRIES = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of one process.

    Attributes:
        load_ms: To have the model ready.
        latencies_ns: Of the runs that were measured.
        num_preempted: How often another process took a core during these runs.
        peak_rss_bytes: The most memory it held.
        arena_bytes: Of its arena, if it says.
    """

    load_ms: float
    first_run_ms: float
    latencies_ns: list[int]
    num_preempted: int
    peak_rss_bytes: int
    arena_bytes: int | None

    @property
    def median_ns(self) -> float:
        return statistics.median(self.latencies_ns)


@dataclass(slots=True)
class Measured:
    """All that was measured of one engine, a sample a round."""

    engine: str
    samples: list[Sample] = field(default_factory=list)

    def ratio(self, ours: "Measured") -> float:
        """Return the median over the rounds of its latency to ours."""
        return statistics.median(
            theirs.median_ns / own.median_ns
            for theirs, own in zip(self.samples, ours.samples, strict=True)
        )

    def as_json(self, ours: "Measured | None") -> dict[str, object]:
        """Return its part of `--json`."""
        medians = [sample.median_ns / 1e6 for sample in self.samples]
        fastest = [min(sample.latencies_ns) / 1e6 for sample in self.samples]
        slowest = [max(sample.latencies_ns) / 1e6 for sample in self.samples]
        return {
            "engine": self.engine,
            "latency_ms": {
                "median": statistics.median(medians),
                "min": min(fastest),
                "max": max(slowest),
            },
            "load_ms": statistics.median(sample.load_ms for sample in self.samples),
            "peak_rss_bytes": int(
                statistics.median(sample.peak_rss_bytes for sample in self.samples)
            ),
            "arena_bytes": self.samples[-1].arena_bytes,
            "ratio": None if ours is None else self.ratio(ours),
        }


@dataclass(frozen=True, slots=True)
class Contest:
    """A measurement to make.

    Attributes:
        files: For each engine the file it loads.
        inputs: A `.npz` of the inputs, in the model's order; where values are fixed in our
            program, `whole_inputs` of it holds the inputs of the others.
        seconds: That each process measures.
        may_drop: Whether an engine that does not run the model is left out with a note.
        by_processor_time: Whether latencies are of the process's processor time, which others'
            work on a core is no part of.
    """

    model_format: str
    files: dict[str, Path]
    inputs: Path
    threads: int
    seconds: float
    may_drop: bool = False
    by_processor_time: bool = False


def measure(
    contest: Contest,
    num_rounds: int,
    report: Callable[[int, str], None],
    observer: Observer = SILENT,
) -> list[Measured]:
    """Return the measurements; on Ctrl-C those of the complete rounds.

    Args:
        num_rounds: Each runs every engine once, in an order that turns.
        report: Told the round and the engine that begins.
        observer: Told of engines that do not run the model.

    Raises:
        EngineError: An engine does not run the model.
        KeyboardInterrupt: Before the first round was complete.
    """
    measured = [Measured(engine) for engine in contest.files]
    try:
        for number in range(num_rounds):
            turned = measured[number % len(measured) :] + measured[: number % len(measured)]
            samples = {}
            for each in turned:
                report(number, each.engine)
                try:
                    samples[each.engine] = min(
                        _tries(contest, each.engine, first=number == 0),
                        key=lambda sample: sample.num_preempted / sum(sample.latencies_ns),
                    )
                except EngineError as error:
                    if number or each.engine == OURS or not contest.may_drop:
                        raise
                    observer.note(str(error))
            measured = [each for each in measured if each.engine in samples]
            for each in measured:
                each.samples.append(samples[each.engine])
    except KeyboardInterrupt:
        if not measured[0].samples:
            raise
    return measured


def whole_inputs(inputs: Path) -> Path:
    """Return where the inputs lie with those that our program does not take."""
    return inputs.with_name(f"whole-{inputs.name}")


def outputs_of(contest: Contest, engine: str) -> Path:
    """Return where an engine's outputs are kept."""
    return contest.inputs.with_name(f"{engine}-outputs.npz")


def ours(measured: Sequence[Measured]) -> Measured | None:
    """Return the measurements of our own engine, if it took part."""
    return next((each for each in measured if each.engine == OURS), None)


def _tries(contest: Contest, engine: str, *, first: bool) -> Iterator[Sample]:
    """Yield samples until other processes leave one alone."""
    for _ in range(_NUM_TRIES):
        sample = _run(contest, engine, first=first)
        yield sample
        always, per_s = _MOST_PREEMPTED
        if sample.num_preempted <= always + per_s * sum(sample.latencies_ns) / 1e9:
            return


def _run(contest: Contest, engine: str, *, first: bool) -> Sample:
    outputs = str(outputs_of(contest, engine)) if first else ""
    whole = whole_inputs(contest.inputs)
    inputs = whole if engine != OURS and whole.exists() else contest.inputs
    command = [
        sys.executable, "-m", "arenite.pipeline.contest.worker",
        contest.model_format, engine, str(contest.files[engine]), str(inputs), outputs,
        str(contest.threads), str(contest.seconds), str(int(contest.by_processor_time)),
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        reason = lines[-1]
        raise EngineError(engine, reason[:_LONGEST] + "..." * (len(reason) > _LONGEST))
    return Sample(**json.loads(process.stdout.splitlines()[-1]))
