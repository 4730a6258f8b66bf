"""What reading and writing costs where the tensors of a network lie in two memories.

    python bench/several_memories.py [--json] [MODEL ...]

The same records, for our runtime, in a fast memory of a half or a quarter of the arena and a slow
one without limit, in which a byte costs four times as much to read and six times as much to write.
Beside our assignment: the least cost that loads allow, and what ExecuTorch's `banked_greedy` would
choose, which takes the tensors by size, the largest first, and puts each into the first memory in
which it finds a gap. Every plan is verified.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table

from arenite.pipeline.targets.arenite import compiled_for
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.planner.programs.memories import CostedMemory, assigned, cost_of, traffic_of
from arenite.planner.tensors import Memory
from arenite.strategies import find, spread
from arenite.strategies.base.gap_search import lowest_gap
from harness import bench, emit, note, parser, table, timed
from harness.inputs import each_of, reading_of, shared_onnx, shared_tflite, zoo_files

ZOO = ("mobilenet-v2", "unet", "resnet50", "densenet121", "inception-v3")
TFLITE = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "person_detect", "vww_96_int8",
    "pretrainedResnet_quant", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip

SHARES = (2, 4)
SLOW = CostedMemory(Memory("slow"), read=4, write=6)
FAST, DEAR = "fast", "slow"


@dataclass(frozen=True)
class Row:
    """One model in a fast memory of one size.

    Attributes:
        model: Its name.
        fast: Bytes of the fast memory.
        cost: Of our assignment, relative to all in fast memory.
        least: No assignment costs less, by loads.
        largest_first: Of the largest first, one pass.
        seconds: To find ours.
    """

    model: str
    fast: int
    cost: float
    least: float
    largest_first: float
    seconds: float


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from zoo_files(ZOO, folder)
    yield from shared_tflite(TFLITE)
    yield from shared_onnx()


def largest_first(problem: Problem, capacity: int) -> dict[str, str]:
    """Return the memory of each record: the first with a gap, by size, the largest first."""
    placed: list[tuple[UsageRecord, int]] = []
    memory_of: dict[str, str] = {}
    for record in sorted(problem.records, key=lambda each: (-each.size, each.start)):
        taken = sorted(
            (offset, offset + other.size) for other, offset in placed if record.meets(other)
        )
        offset = lowest_gap(taken, record.size, record.alignment)
        fits = offset + record.size <= capacity
        memory_of[record.name] = FAST if fits else DEAR
        if fits:
            placed.append((record, offset))
    return memory_of


def compared(model: Path) -> list[Row]:
    """Return the figures of a model, a row for each size of the fast memory."""
    source = compiled_for(reading_of(model), model).source
    traffic = traffic_of(source.problem, source.program)
    height = placed(source.problem).height
    rows = []
    for share in SHARES:
        fast = CostedMemory(Memory(FAST, height // share))
        memories = (fast, SLOW)
        everything = sum(each.cost_in(fast) for each in traffic)
        seconds, ours = timed(partial(spread, source.problem, memories, traffic, placed))
        verify(ours.problem, ours.plan)
        chosen = largest_first(source.problem, height // share)
        theirs = assigned(source.problem, [each.memory for each in memories], chosen)
        rows.append(
            Row(
                model.stem,
                height // share,
                ours.cost / everything,
                ours.least_cost / everything,
                cost_of(theirs, memories, traffic) / everything,
                seconds,
            )
        )
        note(f"{model.stem}: {rows[-1].cost:.2f}, largest first {rows[-1].largest_first:.2f}")
    return rows


def placed(problem: Problem) -> Plan:
    """Return the lowest plan of a problem."""
    return find("best")(problem)


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Cost of reads and writes in two memories, over that of one fast memory for all",
        ("model", "fast memory, B", "ours", "least by loads", "largest first", "seconds"),
        (
            (
                row.model,
                f"{row.fast:,}",
                f"{row.cost:.3f}",
                f"{row.least:.3f}" if row.least else "",
                f"{row.largest_first:.3f}",
                f"{row.seconds:.2f}",
            )
            for row in rows
        ),
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Spread and print."""
    options = parser(__doc__, models="the zoo, and models of ../shared")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = list(each_of(parsed.models, default_models(Path(folder)), compared))
    rows = [row for each in found for row in each]
    emit(parsed, rows, shown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
