"""What a session says that it holds, beside what the process grew by.

    python bench/resident_memory.py [--json] [MODEL ...]

Each model is built and opened in a process of its own, which imports all it needs and opens a
tiny session first. Then it opens the model's session, runs it three times on random input, and
reads from `/proc/self/smaps_rollup` by how much its resident memory grew; free memory of the heap
is given back before each reading. The sum that the session states should come to that: pages, of
4 KiB, are resident whole, and the system may map neighbours of a page that is read from a file.

Without arguments the models are MobileNet v2 of the zoo, with all weights, with a weight budget of
a quarter, and in bands with a weight budget; ResNet-50 and U-Net; and MobileNet v2 in int8 of
`../shared`, where present. Exits with 1 if a sum is off by more than 1 MB.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.programs.costs import Budget
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import WeightBudget
from arenite.strategies import find
from harness.inputs import shared_tflite, zoo_file

NETWORK = "mobilenet-v2"
BANDED = 800_000
"""Bytes of the arena of the network in bands."""
STREAMED = 2_000_000
"""Bytes of its weights that stay."""
OTHERS = ("resnet50", "unet")
TFLITE = ("tf2_mobilenet_v2_1.0_224_ptq",)
MOST_OFF = 1_000_000

CHILD = """
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


@dataclass(frozen=True)
class Row:
    """One program.

    Attributes:
        model: Its name.
        held: Bytes by part, as the session states them.
        total: Their sum, weights that are not resident left out.
        grown: Bytes by which the process grew.
    """

    model: str
    held: dict[str, int]
    total: int
    grown: int

    @property
    def is_off(self) -> bool:
        """Whether the two differ by more than pages and neighbours explain."""
        return abs(self.grown - self.total) > MOST_OFF


def processor() -> str:
    """Return the name of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write_program(model: Path, path: Path, budget: WeightBudget | None = None) -> None:
    """Write the program of a model."""
    compiled = compile_model(model, Reading(weight_budget=budget))
    write_assembly(path, compiled.assemble(find("best")(compiled.source.problem)))


def tiny_program(folder: Path) -> Path:
    """Return a program whose session brings what all sessions share."""
    model = folder / "tiny.onnx"
    parsed = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> tiny (float[1,3,8,8] x, float[4,3,3,3] w)'
        " => (float[1,4,6,6] y) {y = Conv(x, w)}"
    )
    weights = parsed.graph.input.pop()
    shape = [each.dim_value for each in weights.type.tensor_type.shape.dim]
    parsed.graph.initializer.append(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, shape, [0.5] * 108)
    )
    onnx.save(parsed, model)
    path = folder / "tiny.arena"
    write_program(model, path)
    return path


def programs(models: Sequence[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the program of each model."""
    for number, model in enumerate(models):
        path = folder / f"{number}.arena"
        write_program(model, path)
        yield model.stem, path
    if models:
        return
    model = zoo_file(NETWORK, folder)
    for label, budget in (("", None), (", weights 25 %", WeightBudget(25, is_percent=True))):
        path = folder / f"{NETWORK}{label}.arena"
        write_program(model, path, budget)
        yield NETWORK + label, path
    path = folder / "banded.arena"
    fitting = Fitting(model, Reading(weight_budget=WeightBudget(STREAMED)))
    fitting.write(path, fitting.within(Budget(BANDED), None))
    yield f"{NETWORK}, in bands, weights 2 MB", path
    for other in (*(zoo_file(each, folder) for each in OTHERS), *shared_tflite(TFLITE)):
        path = folder / f"{other.stem}.arena"
        write_program(other, path)
        yield other.stem, path


def measured_row(name: str, program: Path, tiny: Path) -> Row:
    """Return what a process of its own says."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tiny, program], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    return Row(name, found["held"], found["total"], found["grown"])


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people, in KiB."""
    parts = list(rows[0].held)
    found = Table("KiB", *parts, "sum", "process grew by")
    for row in rows:
        numbers = [*row.held.values(), row.total, row.grown]
        found.add_row(row.model, *(f"{number / 1024:,.0f}" for number in numbers))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a sum is off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny = tiny_program(folder)
        rows = [
            measured_row(model, program, tiny)
            for model, program in programs(options.models, folder)
        ]
    if options.json:
        stated = {"processor": processor(), "rows": [asdict(row) for row in rows]}
        print(json.dumps(stated, indent=2))
    else:
        print(processor())
        Console(width=140).print(table(rows))
    return int(any(row.is_off for row in rows))


if __name__ == "__main__":
    sys.exit(main())
