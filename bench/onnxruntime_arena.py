"""ONNX Runtime's default arena beside ours, on the same models, outputs compared bit for bit.

    python bench/onnxruntime_arena.py [--json] [MODEL.onnx ...]

Everything runs on one thread. Resident memory is the peak of a fresh process that loads the
model and runs it; latencies are paired, the two sessions taking turns. Without arguments the
models are the nine networks of the `onnx` package, MobileNet v2 from `bench/zoo`, and those
in `../shared/models/onnx`, where present.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from arenite.runtime.targets.onnxruntime import PlannedSession
from arenite.runtime.targets.onnxruntime.measure import stock_memory
from arenite.runtime.targets.onnxruntime.stock import stock_options, stock_session
from arenite.strategies import find

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models" / "onnx"
SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "openseeface_lm_model0_opt": {"input": (1, 3, 224, 224)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}
VALUES = {"sr": 16_000}
"""Inputs that mean something: the sample rate of silero."""

NUM_RUNS = 4
MIN_PAIRS, SECONDS = 7, 4.0
SEED = 0


@dataclass(frozen=True)
class Row:
    """One model; sizes in bytes, weights left out but for `rss`.

    Attributes:
        model: Its file name.
        stock_in_use: Most that its arena has in use, rounding and kernel scratch included.
        stock_held: What its arena has taken from the system.
        outputs: Bytes of the outputs; in the stock arena, and with us the caller's.
        arena: Ours.
        lower_bound: Of ours.
        served: Allocations of a steady run that our arena served.
        outside: Those that it did not.
        identical: Outputs on random inputs, bit for bit.
        stock_rss: Peak resident memory of a fresh process with the stock session.
        rss: The same with ours.
        latency_ratio: Ours to stock, median of the pairs.
        num_pairs: How many pairs.
    """

    model: str
    stock_in_use: int
    stock_held: int
    outputs: int
    arena: int
    lower_bound: int
    served: int
    outside: int
    identical: bool
    stock_rss: int
    rss: int
    latency_ratio: float
    num_pairs: int


def main() -> int:
    """Print the table; exit 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rss", choices=["stock", "planned"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rss:
        print(peak_resident(arguments.models[0], planned=arguments.rss == "planned"))
        return 0
    if arguments.one:
        print(json.dumps(asdict(compare(arguments.models[0]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments.models or default_models(Path(folder))
        rows = [Row(**json.loads(isolated("--one", path))) for path in paths]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(width=180).print(table(rows))
    return int(not all(row.identical and not row.outside for row in rows))


def default_models(folder: Path) -> list[Path]:
    """Return the models to compare on, MobileNet v2 written to the folder."""
    import onnx

    from zoo import NETWORKS

    mobilenet = folder / "mobilenet_v2.onnx"
    onnx.save(NETWORKS["mobilenet-v2"](), mobilenet)
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return [*sorted(light.glob("*.onnx")), mobilenet, *sorted(SHARED.glob("*.onnx"))]


def isolated(*arguments: str | Path) -> str:
    """Return what this script prints in a process of its own."""
    process = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        sys.exit(process.stderr)
    return process.stdout.splitlines()[-1]


def compare(path: Path) -> Row:
    """Return the row of a model."""
    planned, stock = open_session(path, planned=True), open_session(path, planned=False)
    random = np.random.default_rng(SEED)
    identical = True
    for _ in range(NUM_RUNS):
        feeds = drawn(path, stock, random)
        ours, theirs = planned.run(None, feeds), stock.run(None, feeds)
        identical = identical and [each.tobytes() for each in ours] == [
            each.tobytes() for each in theirs
        ]
    ratios = paired_ratios(planned, stock, drawn(path, stock, random))
    arena = stock_memory(path, stock_options(), drawn(path, stock, random), num_runs=NUM_RUNS)
    return Row(
        path.name,
        arena.in_use,
        arena.held,
        sum(each.nbytes for each in ours),
        planned.plan.height,
        planned.plan.lower_bound,
        planned.last_run.inside,
        planned.num_outside,
        identical,
        int(isolated("--rss", "stock", path)),
        int(isolated("--rss", "planned", path)),
        median(ratios),
        len(ratios),
    )


def open_session(path: Path, *, planned: bool) -> Any:
    """Return our session or the stock one."""
    if planned:
        return PlannedSession(path, strategy=find("best"))
    return stock_session(path, stock_options())


def peak_resident(path: Path, *, planned: bool) -> int:
    """Return the peak resident memory of this process after some runs."""
    session = open_session(path, planned=planned)
    feeds = drawn(path, session, np.random.default_rng(SEED))
    for _ in range(NUM_RUNS):
        session.run(None, feeds)
    status = Path("/proc/self/status").read_text()  # ru_maxrss would include the parent's
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def paired_ratios(planned: Any, stock: Any, feeds: dict[str, Any]) -> list[float]:
    """Return latencies of ours to stock's, run in turns, each first every other time."""
    ratios: list[float] = []
    ends = time.perf_counter() + SECONDS
    while len(ratios) < MIN_PAIRS or time.perf_counter() < ends:
        sessions = (planned, stock) if len(ratios) % 2 else (stock, planned)
        seconds = {}
        for session in sessions:
            started = time.perf_counter()
            session.run(None, feeds)
            seconds[session] = time.perf_counter() - started
        ratios.append(seconds[planned] / seconds[stock])
    return ratios


def drawn(path: Path, session: Any, random: np.random.Generator) -> dict[str, Any]:
    """Return random inputs for a model."""
    feeds = {}
    for value in session.get_inputs():
        shape = SHAPES.get(path.stem, {}).get(value.name, value.shape)
        feeds[value.name] = (
            np.array(VALUES[value.name], np.int64)
            if value.name in VALUES
            else random.standard_normal(shape, np.float32)
        )
    return feeds


def table(rows: list[Row]) -> Table:
    """Return the rows for people."""
    result = Table(title="ONNX Runtime, one thread; bytes, weights left out but for RSS")
    result.add_column("model", no_wrap=True)
    for title in (
        "stock in use", "stock holds", "arena", "outputs", "against in use", "bound",
        "served", "outside", "same", "stock RSS", "RSS", "latency",
    ):  # fmt: skip
        result.add_column(title, justify="right")
    for row in rows:
        ours = row.arena + row.outputs
        result.add_row(
            row.model,
            *(f"{each:,}" for each in (row.stock_in_use, row.stock_held)),
            f"{row.arena:,}",
            f"{row.outputs:,}",
            f"{ours / row.stock_in_use - 1:+.1%}",
            "reached" if row.arena == row.lower_bound else f"{row.lower_bound:,}",
            str(row.served),
            str(row.outside),
            "yes" if row.identical else "NO",
            f"{row.stock_rss / 2**20:.1f} MiB",
            f"{row.rss / 2**20:.1f} MiB",
            f"{row.latency_ratio:.3f}",
        )
    return result


if __name__ == "__main__":
    sys.exit(main())
