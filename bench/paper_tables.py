"""Print the tables of Pisarchyk and Lee 2020, for the networks of `zoo`.

Graph inputs and outputs are left out, activations are fused into the operators that feed
them, and nothing is aligned, as in the paper. Every plan is verified before its height is
printed.

Source: Pisarchyk and Lee, arXiv 2001.03288, tables 1 and 2.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from arenite.planner.importers.onnx import read_onnx
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.tensors import Tensor
from arenite.planner.units import align_up
from arenite.strategies import find
from harness import bench, emit, parser, table
from harness.inputs import zoo_file

OBJECTS = {
    "objects-by-size": "greedy by size",
    "objects-by-size-improved": "greedy by size, improved",
    "objects-by-breadth": "greedy by breadth",
    "objects-in-order": "greedy in order (Lee 2019)",
    "objects-min-cost-flow": "min-cost flow (Lee 2019)",
}
"""Rows of table 1: strategies for shared objects."""

OFFSETS = {
    "greedy-by-size": "greedy by size",
    "greedy-by-breadth": "greedy by breadth",
    "objects-in-order": "greedy in order (Lee 2019)",
    "strip-packing": "strip packing (Sekiyama 2018)",
}
"""Rows of table 2: strategies for offsets."""

PAPER = {
    "mobilenet-v1": {"naive": 19.248, "offsets-bound": 4.594},
    "mobilenet-v2": {"naive": 26.313, "offsets-bound": 5.742, "objects-bound": 6.604},
    "deeplab-v3": {"naive": 48.642, "offsets-bound": 4.320},
    "inception-v3": {"naive": 54.010, "offsets-bound": 7.914},
    "posenet": {"naive": 27.556, "offsets-bound": 6.271},
    "blazeface": {"naive": 2.698, "offsets-bound": 0.492},
}
"""MiB, the cells we know of; from memory, so open the paper before quoting one."""

CAPTION = "MiB. = as in the paper; in brackets the paper's figure, where ours differs."


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one network needs, in bytes.

    Attributes:
        network: Its name in the zoo.
        num_records: Intermediate tensors.
        cells: By row: `naive`, `offsets-bound`, `objects-bound` or a strategy.
    """

    network: str
    num_records: int
    cells: Mapping[str, int]

    def paper(self, row: str) -> float | None:
        """Return the paper's figure in MiB, if we know it."""
        return PAPER[self.network].get(row)

    def matches(self, row: str) -> bool:
        """Tell whether the cell is the paper's to three decimals."""
        return _mib(self.cells[row]) == f"{self.paper(row):.3f}"


def footprint(network: str, *, channels_in_fours: bool = False) -> Footprint:
    """Return what `network` needs by every strategy of both tables.

    Args:
        network: A name in the zoo.
        channels_in_fours: Whether feature maps hold a multiple of four channels.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = fuse_activations(read_onnx(zoo_file(network, Path(folder))))
    if channels_in_fours:
        program = _in_fours(program)
    problem = liveness(program, boundary=Boundary.EXCLUDE, alignment=1)
    cells = {"naive": problem.naive, "offsets-bound": problem.lower_bound}
    for name in OBJECTS | OFFSETS:
        plan = run(find(name), problem)
        verify(problem, plan)
        cells[name] = plan.height
        if plan.objects is not None:
            cells["objects-bound"] = plan.objects.lower_bound
    return Footprint(network, len(problem.records), cells)


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables, or their cells in bytes as JSON."""
    options = parser(__doc__)
    options.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(PAPER))
    options.add_argument(
        "--channels-in-fours",
        action="store_true",
        help="round the channels of feature maps up to four, as GPU textures hold them",
    )
    parsed = options.parse_args(arguments)
    for network in parsed.networks:
        if network not in PAPER:
            options.error(f"unknown network {network!r}; known: {', '.join(PAPER)}")
    footprints = [
        footprint(network, channels_in_fours=parsed.channels_in_fours)
        for network in parsed.networks or PAPER
    ]
    emit(
        parsed,
        {"networks": [_as_json(each) for each in footprints]},
        _table("Table 1: shared objects", OBJECTS, "objects-bound", footprints),
        _table("Table 2: offsets", OFFSETS, "offsets-bound", footprints),
    )
    return 0


def _in_fours(program: Program) -> Program:
    tensors = {name: _rounded(tensor) for name, tensor in program.tensors.items()}
    return replace(program, tensors=tensors)


def _rounded(tensor: Tensor) -> Tensor:
    if len(tensor.shape) != 4:
        return tensor
    batch, channels, height, width = tensor.shape
    return replace(tensor, shape=(batch, align_up(channels, 4), height, width))


def _table(
    title: str, strategies: Mapping[str, str], bound: str, footprints: Sequence[Footprint]
) -> Table:
    rows = [
        (label, *(_cell(each, name) for each in footprints))
        for name, label in {**strategies, bound: "lower bound", "naive": "naive"}.items()
    ]
    rows.append(("records", *(str(each.num_records) for each in footprints)))
    return table(title, ("", *(each.network for each in footprints)), rows, caption=CAPTION)


def _cell(footprint: Footprint, row: str) -> str:
    ours, paper = _mib(footprint.cells[row]), footprint.paper(row)
    if paper is None:
        return ours
    return f"= {ours}" if footprint.matches(row) else f"({paper:.3f}) {ours}"


def _as_json(footprint: Footprint) -> dict[str, object]:
    return {
        "network": footprint.network,
        "num_records": footprint.num_records,
        "cells": dict(footprint.cells),
        "paper": {
            row: {"mib": mib, "matches": footprint.matches(row)}
            for row, mib in PAPER[footprint.network].items()
        },
    }


def _mib(size: int) -> str:
    return f"{size / 2**20:.3f}"


if __name__ == "__main__":
    sys.exit(main())
