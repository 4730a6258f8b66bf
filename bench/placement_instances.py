"""Write the placement instances of `assets/instances`: hard for greedy strategies, from seeds.

    python bench/placement_instances.py [FOLDER]

`placement_families.py` describes the families. A file is `NAME.CAPACITY.csv` with the columns
`id,lower,upper,size`, lifetimes half-open. The capacity is the lower bound, which is known to be
the optimum of every tiling, by construction. A seed is in the list because greedy by size is at
least 10 % above the bound on what it gives, and because the instances then differ in how long an
exact search takes.
"""

import argparse
import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from arenite.planner.files import write_atomically
from arenite.planner.placement.problem import Problem, UsageRecord
from harness.inputs import CHECKOUT
from placement_families import cells, tiling, training

INSTANCES = CHECKOUT / "assets" / "instances"

MADE: Mapping[str, Callable[[], list[UsageRecord]]] = {
    "cells-12x8": partial(cells, 12, 8, 1024, seed=11),
    "cells-16x16": partial(cells, 16, 16, 1024, seed=39),
    "cells-24x8": partial(cells, 24, 8, 1024, seed=16),
    "tiling-100": partial(tiling, 100, 60, 1 << 14, 0.0, seed=2),
    "tiling-150": partial(tiling, 150, 100, 1 << 16, 0.3, seed=1),
    "tiling-200": partial(tiling, 200, 100, 1 << 16, 0.6, seed=0),
    "tiling-220a": partial(tiling, 220, 120, 1 << 18, 0.8, seed=4),
    "tiling-220b": partial(tiling, 220, 120, 1 << 18, 0.8, seed=2),
    "training-60a": partial(training, 60, 1024, seed=4),
    "training-60b": partial(training, 60, 1024, seed=5),
    "training-90a": partial(training, 90, 1024, seed=4),
    "training-90b": partial(training, 90, 1024, seed=5),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all instances."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=INSTANCES)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files():
        write_atomically(folder / name, content)
    return 0


def files() -> list[tuple[str, bytes]]:
    """Return the name and the content of each file."""
    found = []
    for name, make in MADE.items():
        records = make()
        capacity = Problem(tuple(records)).lower_bound
        found.append((f"{name}.{capacity}.csv", _as_csv(records)))
    return found


def _as_csv(records: Sequence[UsageRecord]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "lower", "upper", "size"))
    for record in records:
        writer.writerow((record.name, record.start, record.end, record.size))
    return text.getvalue().encode()


if __name__ == "__main__":
    sys.exit(main())
