"""Operator order: the peak as written, breadth-first, and the least, with proof.

    python bench/operator_order.py [--json] [LAYERED.json ...]

The cells of `bench/zoo` are regenerated, not those of the papers, so ratios may be compared and
bytes may not. Files named are random layered graphs in the form of the Moccasin repository
(node-link JSON with `out_cost`), which is fetched, not part of this project.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from rich.table import Table

from arenite.planner.importers.onnx import read_onnx
from arenite.planner.operators.operator import Operator
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.rules import AliasKind, Rules
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.tensors import DType, Tensor, TensorKind
from arenite.strategies import find_order
from harness import bench, emit, parser, table, timed
from harness.inputs import required
from zoo import CELLS

PUBLISHED = {
    "darts": 1656 / 903,
    "swiftnet-a": 552 / 251,
    "swiftnet-b": 194 / 82,
    "swiftnet-c": 70 / 33,
    "randwire-78-a": 645 / 459,
    "randwire-78-b": 330 / 260,
    "randwire-156-a": 605 / 359,
    "randwire-156-b": 350 / 280,
    "randwire-312": 160 / 115,
}
"""TFLite's peak over that of the best order, for cells of the same family (Ahn et al. 2020,
SERENITY, from memory: open the paper before quoting one)."""

CELL_MODEL = Rules((AliasKind.VIEWS, AliasKind.IN_PLACE))
LAYERED_RULES = Rules(alignment=1)


@dataclass(frozen=True)
class Row:
    """One graph; peaks in bytes.

    Attributes:
        graph: Its name.
        num_operators: After activations are fused.
        given: Peak in the order of the file.
        breadth_first: Peak in breadth-first order.
        best: Lowest peak found.
        proved: Whether no order has a lower one.
        seconds: Of the search.
        published: Ratio that SERENITY states for a cell of this family.
    """

    graph: str
    num_operators: int
    given: int
    breadth_first: int
    best: int
    proved: bool
    seconds: float
    published: float | None


def cells() -> Iterator[Row]:
    """Yield the cells of the zoo."""
    with tempfile.TemporaryDirectory() as folder:
        for name, network in CELLS.items():
            path = Path(folder) / f"{name}.onnx"
            onnx.save(network(), path)
            graph = fuse_activations(read_onnx(path))
            yield measured(name, graph, CELL_MODEL, PUBLISHED.get(name))


def layered(path: Path) -> Row:
    """Return what was measured of a layered graph."""
    data = json.loads(path.read_text())
    sizes = {node["name"]: int(node["out_cost"]) for node in data["nodes"]}
    sources: dict[int, list[str]] = {name: [] for name in sizes}
    for link in data["links"]:
        first, second = (link.get(key, link.get(other)) for key, other in _ENDS)
        sources[second].append(str(first))
    target = data["graph"]["target_node"]
    tensors = [
        Tensor(
            str(name),
            DType.UINT8,
            (size,),
            TensorKind.OUTPUT if name == target else TensorKind.ACTIVATION,
        )
        for name, size in sizes.items()
    ]
    steps = [
        Step(f"node {name}", Operator(), tuple(sources[name]), (str(name),))
        for name in data["graph"]["order"]
    ]
    program = Program.of(path.stem, tensors, steps, (), (str(target),))
    return measured(path.stem, program, LAYERED_RULES, None)


_ENDS = (("source", "0"), ("target", "1"))


def measured(name: str, program: Program, rules: Rules, published: float | None) -> Row:
    """Return the row of a program."""
    seconds, best = timed(lambda: find_order("optimal")(program, rules))
    return Row(
        name,
        len(program.steps),
        find_order("given")(program, rules).peak,
        find_order("breadth-first")(program, rules).peak,
        best.peak,
        best.optimal,
        seconds,
        published,
    )


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Peaks by operator order, bytes",
        (
            "graph", "operators", "given", "breadth-first", "best", "", "seconds",
            "given / best", "breadth-first / best", "SERENITY",
        ),
        (
            (
                row.graph,
                str(row.num_operators),
                f"{row.given:,}",
                f"{row.breadth_first:,}",
                f"{row.best:,}",
                "proved" if row.proved else "",
                f"{row.seconds:.2f}",
                f"{row.given / row.best:.2f}",
                f"{row.breadth_first / row.best:.2f}",
                "" if row.published is None else f"{row.published:.2f}",
            )
            for row in rows
        ),
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("layered", nargs="*", type=Path, metavar="LAYERED.json")
    parsed = options.parse_args(arguments)
    if parsed.layered:
        required(parsed.layered, "graphs come from the Moccasin repository's folder of data")
    rows = [*cells(), *(layered(path) for path in parsed.layered)]
    emit(parsed, rows, shown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
