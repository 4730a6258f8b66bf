"""Whether what a process holds grows with its runs, or with the sessions that it opens.

    python bench/soak.py [--runs N] [--sessions N] [--json]

A small network of convolutions and products has a program with all of its weights and one that
streams most of them into the arena for each run. Each program's session runs so many times, with
one thread and with two; then so many sessions are opened, run once and closed. Each of these has a
process of its own. What it holds is read ten times on the way: resident bytes, mappings, open
files and threads.

The first reading, after a tenth, is what a process holds that has warmed up. Exits with 1 if one
ends with more than 256 KiB beyond it, or with more mappings, files or threads.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.table import Table

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import Session
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import WeightBudget
from arenite.strategies import find
from harness import bench, emit, in_fresh_process, parser, table
from zoo.builder import NetworkBuilder

NUM_RUNS = 100_000
NUM_SESSIONS = 10_000
NUM_READINGS = 10
MOST_GROWTH = 256 << 10
STREAMED = WeightBudget(40, is_percent=True)
"""Weights that may be resident in the program that streams."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds.

    Attributes:
        resident: Bytes of memory.
        mappings: Number of stretches of addresses.
        files: Number of open files.
        threads: Number of threads.
    """

    resident: int
    mappings: int
    files: int
    threads: int

    @classmethod
    def now(cls) -> "Holding":
        """Return what this process holds."""
        process = Path("/proc/self")
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len((process / "maps").read_text().splitlines()),
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
        )

    def has_grown(self, since: "Holding") -> bool:
        """Tell whether it is more than it was, by more than an allocator's rounding."""
        return (
            self.resident > since.resident + MOST_GROWTH
            or self.mappings > since.mappings + 2  # the heap may be cut in two, and again
            or self.files > since.files
            or self.threads > since.threads
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of work, over and over.

    Attributes:
        program: What is special about the program.
        work: What is done.
        threads: Number of threads of a session.
        count: How often.
        readings: What the process held on the way, the first one after a tenth.
    """

    program: str
    work: str
    threads: int
    count: int
    readings: list[Holding]

    @property
    def has_grown(self) -> bool:
        """Whether the process holds more at the end than after a tenth."""
        return self.readings[-1].has_grown(self.readings[0])


def write_programs(folder: Path) -> dict[str, Path]:
    """Write the programs of the network, by what is special about them."""
    network = NetworkBuilder("soak")
    x = network.input("x", 1, 3, 16, 16)
    x = network.conv(x, 16, 3, 2)
    x = network.conv(x, 32, 3, 2)
    x = network.conv(x, 64, 3, 2)
    network.output(network.conv(x, 32, 1), "y")
    model = folder / "soak.onnx"
    onnx.save(network.build(), model)
    found = {}
    for name, budget in (("all weights", None), ("streamed weights", STREAMED)):
        compiled = compile_model(model, Reading(weight_budget=budget))
        found[name] = folder / f"{name}.arena"
        plan = find("best")(compiled.source.problem)
        write_assembly(found[name], compiled.assemble(plan))
    return found


def holdings(work: Callable[[], object], count: int) -> list[Holding]:
    """Do something so many times, and read what the process holds after each tenth."""
    found = []
    for part in range(NUM_READINGS):
        for _ in range(count * part // NUM_READINGS, count * (part + 1) // NUM_READINGS):
            work()
        found.append(Holding.now())
    return found


def run_often(program: Path, threads: int, count: int) -> list[Holding]:
    """Run one session so many times."""
    with Session(program, threads=threads) as session:
        feeds = _feeds(session)
        return holdings(lambda: session.run(feeds), count)


def open_often(program: Path, threads: int, count: int) -> list[Holding]:
    """Open, run and close so many sessions."""

    def once() -> None:
        with Session(program, threads=threads) as session:
            session.run(_feeds(session))

    return holdings(once, count)


def _feeds(session: Session) -> dict[str, NDArray[Any]]:
    return {port.name: np.full(port.shape, 0.5, port.dtype) for port in session.inputs}


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "What a process holds after a tenth and at the end",
        ("program", "work", "threads", "times", "KiB", "KiB", "mappings", "files", "all threads"),
        (
            (
                row.program, row.work, str(row.threads), f"{row.count:,}",
                f"{row.readings[0].resident >> 10:,}", f"{row.readings[-1].resident >> 10:,}",
                *(
                    f"{first}" if first == last else f"{first} to {last}"
                    for first, last in (
                        (row.readings[0].mappings, row.readings[-1].mappings),
                        (row.readings[0].files, row.readings[-1].files),
                        (row.readings[0].threads, row.readings[-1].threads),
                    )
                ),
            )
            for row in rows
        ),
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, print, and return 1 if something grew."""
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=NUM_RUNS, metavar="N")
    options.add_argument("--sessions", type=int, default=NUM_SESSIONS, metavar="N")
    parsed = options.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, program in write_programs(Path(folder)).items():
            for threads in (1, 2):
                for work, often, count in (
                    ("runs", run_often, parsed.runs), ("sessions", open_often, parsed.sessions)
                ):  # fmt: skip
                    found = in_fresh_process(often, program, threads, count)
                    rows.append(Row(name, work, threads, count, found))
    emit(parsed, [asdict(row) for row in rows], shown(rows))
    return int(any(row.has_grown for row in rows))


if __name__ == "__main__":
    sys.exit(main())
