"""Memory of processes: the peak of each runtime, the sum that a session states, and growth."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs, write_program
from arenite.pipeline.targets.arenite import compiled_for
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.programs.costs import Budget
from arenite.runtime import Session
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import Kernels, Loading, WeightBudget, weight_bytes
from arenite.strategies import find
from bench.harness.contest import TABLE, Asked, Row, contest, option, required
from bench.harness.engines import compiled_entry, race
from bench.harness.inputs import shared_tflite, zoo_file
from bench.harness.measuring import Spread, in_fresh_process, interleaved, paired_ratios
from bench.harness.runner import RUNNER, Ran, build_runner, run_program
from bench.quantised import quantised_networks
from bench.zoo.builder import NetworkBuilder

NETWORK = "mobilenet-v2"
TRAINED = "tf2_mobilenet_v2_1.0_224_ptq"
BANDED, STREAMED = 800_000, 2_000_000
"""Bytes of the arena in bands, and of the resident weights where they are streamed."""
_ENGINES = {RUNNER: RUNNER, "arenite": "Python, ours", "onnxruntime": "ONNX Runtime",
            "litert-xnnpack": "LiteRT, XNNPACK", "litert": "LiteRT, its own kernels"}  # fmt: skip
_PEAKS = "Peak resident memory, MiB"
_FITTED = f"Peak resident memory of {RUNNER}, {NETWORK} fp32, MB (10^6 B)"
_NUM_RUNS = 20


@contest(
    {
        _PEAKS: {"model": "", "arena": ".1f", **dict.fromkeys(_ENGINES.values(), ".1f")},
        _FITTED: {"arenite fit": "", "arena": ".2f", "peak": ".2f", "limit": ".2f",
                  "latency": ".2f"},
    },
    models="MobileNet v2, fp32 and int8",
    rounds=5,
    options=[option("--runner", type=Path, help="arenite-run (default: built here)")],
)  # fmt: skip
def process_memory(asked: Asked) -> Iterator[Row]:
    """Peak resident memory of a process that loads a model and runs it, runtime by runtime.

    `arenite-run` is a C process; the others are Python with numpy and one runtime. Each is started
    in every round, on the same random input, with one thread; the figure is the median of the
    peaks that the processes report (`VmHWM`). The network of the zoo runs again as `arenite fit`
    builds it, in bands and with streamed weights, each with a limit of the process and its latency
    relative to the whole program with direct kernels. No Python process may take less than
    `arenite-run`.
    """
    named = asked.models and required(asked.models, "name ONNX or TFLite files")
    runner = asked.given.runner or build_runner()

    def models() -> Iterator[Path]:
        yield zoo_file(NETWORK, asked.folder)
        yield next(quantised_networks(asked.folder, (NETWORK,)))
        yield from shared_tflite((TRAINED,))

    for model in named or models():
        entry = compiled_entry(model, asked.folder)
        files = [asked.folder / f"{number}.raw" for number in range(len(entry.inputs[0]))]
        for file, array in zip(files, entry.inputs[0], strict=True):
            array.tofile(file)
        ran = [run_program(runner, entry.program, files, _NUM_RUNS) for _ in range(asked.rounds)]
        peaks = {RUNNER: Spread.of(each.peak_rss_bytes for each in ran).median}
        others = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack", "litert")}
        raced = race(entry, others[entry.model_format], asked.rounds, may_drop=True)
        peaks |= {name: Spread.of(each.peaks_bytes).median for name, each in raced.items()}
        least = min(peaks.values())
        asked.require(peaks[RUNNER] <= least, f"{model.stem}: {RUNNER} takes the least")
        yield {
            TABLE: _PEAKS, "model": model.stem, "arena": entry.arena_bytes / 2**20,
            **{_ENGINES[name]: peak / 2**20 for name, peak in peaks.items()},
        }  # fmt: skip
    if not named:
        yield from _fitted(runner, asked)


def _fitted(runner: Path, asked: Asked) -> Iterator[Row]:
    """Yield the network of the zoo in less memory: arena, peak and limit in MB."""
    model = zoo_file(NETWORK, asked.folder)
    raw = asked.folder / "input.raw"
    programs = {"whole": asked.folder / "whole.arena"}
    arenas: dict[str, int] = {}
    limits: dict[str, int] = {}
    ways: dict[str, WeightBudget | None] = {"in bands": None} | {
        f"in bands, weights streamed {loading}": WeightBudget(STREAMED, loading=loading)
        for loading in Loading
    }
    for number, (name, budget) in enumerate(ways.items()):
        fitting = Fitting(model, Reading(weight_budget=budget))
        fit = fitting.within(Budget(BANDED), None)
        programs[name] = asked.folder / f"{number}.arena"
        fitting.write(programs[name], fit)
        arenas[name] = fit.height
        resident = weight_bytes(fitting.program)
        limits[name] = 5_000_000 + resident if budget is None else 8_000_000
    whole = compiled_for(Reading(), model, kernels=Kernels.DIRECT)
    write_program(programs["whole"], whole, place(find("best"), whole.source.problem))
    random_inputs(whole.program, 0)[whole.program.inputs[0].name].tofile(raw)

    def ran(name: str) -> Ran:
        return run_program(runner, programs[name], [raw], _NUM_RUNS)

    found = interleaved({name: partial(ran, name) for name in programs}, asked.rounds)
    times = {name: [each.median_ms for each in its] for name, its in found.items()}
    for name in ways:
        peak = Spread.of(each.peak_rss_bytes for each in found[name]).median
        asked.require(peak <= limits[name], f"{name}: within {limits[name]:,} B")
        yield {
            TABLE: _FITTED, "arenite fit": name, "arena": arenas[name] / 1e6, "peak": peak / 1e6,
            "limit": limits[name] / 1e6, "latency": paired_ratios(times[name], times["whole"]),
        }  # fmt: skip


MOST_OFF = 1_000_000
_CHILD = """
import ctypes, json, sys
from dataclasses import asdict
import numpy as np
from arenite.runtime.session import Session

def resident():
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/smaps_rollup") as stream:
        return next(int(line.split()[1]) << 10 for line in stream if line.startswith("Rss:"))

def run(path):
    session = Session(path)
    random = np.random.default_rng(0)
    feeds = {p.name: random.random(p.shape).astype(p.dtype) for p in session.inputs}
    for _ in range(3):
        session.run(feeds, copy=False)
    return session

warm = run(sys.argv[1])
before = resident()
session = run(sys.argv[2])
grown = resident() - before
held = session.memory()
json.dump({"grown": grown, "total": held.total, "held": asdict(held)}, sys.stdout)
"""


@contest(
    {"A session's own account beside the growth of its process, B": {
        "model": "", "account": "", "sum": "", "process grew by": "", "more": "",
    }},
    models="MobileNet v2, whole, with a weight budget and in bands; ResNet-50; U-Net",
)  # fmt: skip
def resident_memory(asked: Asked) -> Iterator[Row]:
    """The resident bytes that a session states, beside the growth of its process.

    Each program runs in a process of its own, which opens a tiny session first, then the model's,
    and runs it three times. Growth is read from `/proc/self/smaps_rollup`, free memory of the heap
    given back first. Both may differ by 1 MB: pages are resident whole.
    """
    tiny = _tiny_program(asked.folder)
    for name, program in _programs(asked):
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, tiny, program],
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        more = found["grown"] - found["total"]
        asked.require(abs(more) <= MOST_OFF, f"{name}: within {MOST_OFF:,} B of the growth")
        account = ", ".join(f"{part} {size:,}" for part, size in found["held"].items() if size)
        yield {
            "model": name, "account": account, "sum": found["total"],
            "process grew by": found["grown"], "more": more,
        }  # fmt: skip


def _write(model: Path, path: Path, budget: WeightBudget | None = None) -> Path:
    compiled = compile_model(model, Reading(weight_budget=budget))
    write_assembly(path, compiled.assemble(find("best")(compiled.source.problem)))
    return path


def _tiny_program(folder: Path) -> Path:
    """Return a program whose session loads all that sessions share."""
    net = NetworkBuilder("tiny")
    net.output(net.conv(net.input("x", 1, 3, 8, 8), 4, 3), "y")
    onnx.save(net.build(), folder / "tiny.onnx")
    return _write(folder / "tiny.onnx", folder / "tiny.arena")


def _programs(asked: Asked) -> Iterator[tuple[str, Path]]:
    folder = asked.folder
    for number, model in enumerate(asked.models):
        yield model.stem, _write(model, folder / f"{number}.arena")
    if asked.models:
        return
    model = zoo_file(NETWORK, folder)
    yield NETWORK, _write(model, folder / "whole.arena")
    quarter = WeightBudget(25, is_percent=True)
    yield f"{NETWORK}, weights 25 %", _write(model, folder / "quarter.arena", quarter)
    path = folder / "banded.arena"
    fitting = Fitting(model, Reading(weight_budget=WeightBudget(STREAMED)))
    fitting.write(path, fitting.within(Budget(BANDED), None))
    yield f"{NETWORK}, in bands, weights 2 MB", path
    others = (zoo_file("resnet50", folder), zoo_file("unet", folder), *shared_tflite((TRAINED,)))
    for other in others:
        yield other.stem, _write(other, folder / f"{other.stem}.arena")


MOST_GROWTH = 256 << 10


@dataclass(frozen=True, slots=True)
class Holding:
    """Resident bytes, mappings, open files and threads of a process."""

    resident: int
    mappings: int
    files: int
    threads: int

    @classmethod
    def now(cls) -> "Holding":
        """Return those of this process."""
        process = Path("/proc/self")
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len((process / "maps").read_text().splitlines()),
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
        )

    def has_grown(self, since: "Holding") -> bool:
        """Tell whether it has grown by more than an allocator's rounding."""
        return (
            self.resident > since.resident + MOST_GROWTH
            or self.mappings > since.mappings + 2  # the heap may be cut in two, and again
            or self.files > since.files
            or self.threads > since.threads
        )


@contest(
    {"A process after a tenth of its work and at the end": {
        "program": "", "work": "", "threads": "", "times": "", "KiB": "", "KiB at the end": "",
        "mappings": "", "mappings at the end": "", "files": "", "files at the end": "",
        "threads in all": "", "threads in all at the end": "",
    }},
    options=[
        option("--runs", type=int, default=100_000, metavar="N"),
        option("--sessions", type=int, default=10_000, metavar="N"),
    ],
)  # fmt: skip
def soak(asked: Asked) -> Iterator[Row]:
    """Growth of a process over many runs of a session, or over many sessions.

    A small network runs with all weights resident and with streamed ones, with one thread and with
    two, each kind of work in a process of its own. A process that ends with more than 256 KiB
    beyond its state after a tenth of the work, or with more mappings, files or threads, has grown.
    """
    for name, program in soak_programs(asked.folder).items():
        for threads in (1, 2):
            for work, often, count in (
                ("runs", run_often, asked.given.runs),
                ("sessions", open_often, asked.given.sessions),
            ):
                found = in_fresh_process(often, program, threads, count)
                first, last = found[0], found[-1]
                asked.require(not last.has_grown(first), f"{name}, {work}, {threads}: no growth")
                yield {
                    "program": name, "work": work, "threads": threads, "times": count,
                    "KiB": first.resident >> 10, "KiB at the end": last.resident >> 10,
                    "mappings": first.mappings, "mappings at the end": last.mappings,
                    "files": first.files, "files at the end": last.files,
                    "threads in all": first.threads, "threads in all at the end": last.threads,
                }  # fmt: skip


def soak_programs(folder: Path) -> dict[str, Path]:
    """Write the programs of the small network."""
    net = NetworkBuilder("soak")
    x = net.input("x", 1, 3, 16, 16)
    for channels in (16, 32, 64):
        x = net.conv(x, channels, 3, 2)
    net.output(net.conv(x, 32, 1), "y")
    model = folder / "soak.onnx"
    onnx.save(net.build(), model)
    budget = WeightBudget(40, is_percent=True)
    return {
        "all weights": _write(model, folder / "all.arena"),
        "streamed weights": _write(model, folder / "streamed.arena", budget),
    }


def holdings(work: Callable[[], object], count: int) -> list[Holding]:
    """Return the state of the process after each tenth of the work."""
    found = []
    for part in range(10):
        for _ in range(count * part // 10, count * (part + 1) // 10):
            work()
        found.append(Holding.now())
    return found


def run_often(program: Path, threads: int, count: int) -> list[Holding]:
    """Run one session many times."""
    with Session(program, threads=threads) as session:
        feeds = _feeds(session)
        return holdings(lambda: session.run(feeds), count)


def open_often(program: Path, threads: int, count: int) -> list[Holding]:
    """Open, run and close many sessions."""

    def once() -> None:
        with Session(program, threads=threads) as session:
            session.run(_feeds(session))

    return holdings(once, count)


def _feeds(session: Session) -> dict[str, NDArray[Any]]:
    return {port.name: np.full(port.shape, 0.5, port.dtype) for port in session.inputs}
