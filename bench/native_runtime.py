"""Our runtime beside ONNX Runtime and LiteRT: outputs, latency, memory.

    python bench/native_runtime.py [--threads 1,2] [--rounds N] [--json] [MODEL ...]

Every engine runs in fresh processes, turn by turn; a latency is the median over the rounds of
ours to the other's, so below 1 ours is faster. Without arguments the models are the nine
networks of the `onnx` package, those of `bench/zoo`, and the floating-point models in
`../shared/models`, where present. The weights of the `onnx` package's networks are constants.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from arenite.cli.commands.bench.engines import OURS
from arenite.cli.commands.bench.rounds import Contest, Measured, measure, ours, outputs_of
from arenite.cli.planning.programs import build_program, random_inputs
from arenite.planner.importers import model_format
from arenite.runtime.session import Session
from zoo import NETWORKS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
DIMS: Mapping[str, Mapping[str, int]] = {
    "openseeface_lm_model0_opt": {"batch_size": 1},
    "silero_vad_16k_op15": {"batch": 1, "sequence": 576},
}
FLOAT_TFLITE = ("hello_world_float", "pretrainedResnet", "ultraface_rfb320", "vww_96_float")
OPPONENTS = {"onnx": "onnxruntime", "tflite": "litert-xnnpack"}
SECONDS = 0.5


@dataclass(frozen=True)
class Row:
    """One model on some threads.

    Attributes:
        model: Its name.
        opponent: The engine beside ours.
        threads: Of both.
        steps: How many each backend of ours runs.
        difference: Largest difference of an output, relative to the largest number in it.
        ratio: Our latency to the opponent's, the median of pairs.
        memory: Our peak resident memory to the opponent's.
        peak_rss: Ours, in bytes.
        arena: Bytes of our arena.
    """

    model: str
    opponent: str
    threads: int
    steps: dict[str, int]
    difference: float
    ratio: float
    memory: float
    peak_rss: int
    arena: int


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from sorted(LIGHT.glob("*.onnx"))
    for name, network in NETWORKS.items():
        path = folder / f"{name}.onnx"
        onnx.save(network(), path)
        yield path
    yield from sorted((SHARED / "onnx").glob("*.onnx"))
    for name in FLOAT_TFLITE:
        path = SHARED / "tflite" / f"{name}.tflite"
        if path.is_file():
            yield path


def measured_rows(model: Path, threads: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield what was measured of a model, for each number of threads."""
    kind = model_format(model)
    opponent = OPPONENTS[kind]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "model.arena"
        compiled = build_program(model, program, dims=DIMS.get(model.stem, {}), shapes={})
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, *random_inputs(compiled.lowered, 0).values())
        with Session(program) as session:
            steps = dict(Counter(session.backends()))
        for count in threads:
            contest = Contest(kind, {OURS: program, opponent: model}, inputs, count, SECONDS)
            measured = measure(contest, rounds, lambda _number, _engine: None)
            yield row(model.stem, steps, contest, measured)


def row(model: str, steps: dict[str, int], contest: Contest, measured: list[Measured]) -> Row:
    """Return the row of what was measured."""
    own = ours(measured)
    assert own is not None
    other = next(each for each in measured if each is not own)
    mine, theirs = own.as_json(own), other.as_json(own)
    return Row(
        model=model.removeprefix("light_"),
        opponent=other.engine,
        threads=contest.threads,
        steps=steps,
        difference=difference(outputs_of(contest, OURS), outputs_of(contest, other.engine)),
        ratio=1 / other.ratio(own),
        memory=int(str(mine["peak_rss_bytes"])) / int(str(theirs["peak_rss_bytes"])),
        peak_rss=int(str(mine["peak_rss_bytes"])),
        arena=int(str(mine["arena_bytes"])),
    )


def difference(mine: Path, theirs: Path) -> float:
    """Return the largest difference of two sets of outputs, each relative to its largest."""
    with np.load(mine) as own, np.load(theirs) as others:
        pairs = [
            (own[a].astype(np.float64), others[b].astype(np.float64))
            for a, b in zip(own.files, others.files, strict=True)
        ]
    return max(
        float(np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(b), initial=0.0), 1e-12))
        for a, b in pairs
    )


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    found = Table(
        "model", "beside", "threads", "steps", "difference", "latency", "memory", "arena"
    )
    for each in rows:
        steps = ", ".join(f"{count} {backend}" for backend, count in each.steps.items())
        found.add_row(
            each.model,
            each.opponent,
            str(each.threads),
            steps,
            f"{each.difference:.0e}",
            f"{each.ratio:.2f}",
            f"{each.memory:.2f}",
            f"{each.arena:,}",
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is further off than 1e-4."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    threads = [int(count) for count in options.threads.split(",")]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models or default_models(Path(folder)):
            for found in measured_rows(model, threads, options.rounds):
                rows.append(found)
                if not options.json:
                    print(
                        f"{found.model}: {found.ratio:.2f} of {found.opponent}, "
                        f"{found.threads} threads",
                        file=sys.stderr,
                    )
    if options.json:
        print(json.dumps([asdict(each) for each in rows], indent=2))
    else:
        Console(width=140).print(table(rows))
    return int(any(each.difference > 1e-4 for each in rows))


if __name__ == "__main__":
    sys.exit(main())
