"""The placement instances of `assets/instances`, hard for greedy strategies, made from seeds.

    python -m bench.placement_instances [FOLDER]

Families:

- `tiling`: the pieces of a rectangle that is cut again and again, straight through or as a
  pinwheel. The pieces fill the rectangle, so its height is both the lower bound and the optimum.
- `training`: a forward and a backward pass. Activations nest around the turn, gradients of the
  weights stay to the end, gradients of activations and workspaces are short-lived.
- `cells`: a chain of randomly wired cells: an operator reads one or two earlier results of its
  cell, and a cell's results are joined at its end.

A file is `NAME.CAPACITY.csv` with the columns `id,lower,upper,size`, lifetimes half-open. The
capacity is the lower bound, which is the optimum of every tiling. A seed is in the list because
greedy by size is at least 10 % above the bound on its instance. The same arguments give the same
records on every machine: only `random.Random` is drawn from.
"""

import argparse
import csv
import io
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from arenite.planner.files import write_atomically
from arenite.planner.placement.problem import Problem, UsageRecord
from bench.harness.inputs import CHECKOUT

Piece = tuple[int, int, int]
"""Start, end and size of a piece of a tiling."""


def tiling(
    num_records: int, num_steps: int, height: int, pinwheels: float, seed: int
) -> list[UsageRecord]:
    """Return the pieces of a rectangle of `num_steps` by `height`.

    Args:
        num_records: At least this many pieces, at most three more.
        num_steps: Width of the rectangle.
        height: Of the rectangle in bytes: the optimum.
        pinwheels: Probability that a cut makes a pinwheel of five pieces, which no straight
            cut separates.
        seed: Decides the cuts and the order of the records.
    """
    generator = random.Random(seed)
    pieces: list[Piece] = [(0, num_steps, height)]
    while len(pieces) < num_records:
        largest = max(range(len(pieces)), key=lambda index: _area(pieces[index]))
        piece = pieces.pop(largest)
        start, end, size = piece
        if end - start >= 3 and size >= 3 and generator.random() < pinwheels:
            pieces += _pinwheel(piece, generator)
        elif end - start > 1 and (size == 1 or generator.random() < 0.5):
            cut = generator.randint(start + 1, end - 1)
            pieces += [(start, cut, size), (cut, end, size)]
        else:
            low = generator.randint(1, size - 1)
            pieces += [(start, end, low), (start, end, size - low)]
    generator.shuffle(pieces)
    return _records((f"p{index}", piece) for index, piece in enumerate(pieces))


def training(num_layers: int, unit: int, seed: int) -> list[UsageRecord]:
    """Return the records of one training step.

    Args:
        num_layers: Each gives an activation, two gradients and, half of the time, a workspace.
        unit: Bytes that all sizes are multiples of.
        seed: Decides widths, skip connections and workspaces.
    """
    generator = random.Random(seed)
    num_steps = 2 * num_layers
    named: list[tuple[str, Piece]] = []
    for layer in range(num_layers):
        backward = num_steps - 1 - layer
        activation = unit * generator.randint(4, 48)
        named.append((f"act{layer}", (layer, backward + 1, activation)))
        weight_gradient = unit * generator.randint(4, 48)
        named.append((f"wgrad{layer}", (backward, num_steps, weight_gradient)))
        gradient = unit * generator.randint(4, 48)
        named.append((f"grad{layer}", (backward, min(backward + 2, num_steps), gradient)))
        if generator.random() < 0.5:
            step = generator.choice((layer, backward))
            named.append((f"work{layer}", (step, step + 1, unit * generator.randint(8, 64))))
        if layer and generator.random() < 0.3:
            skip = min(layer + generator.randint(2, 8), num_layers)
            named.append((f"skip{layer}", (layer, skip + 1, unit * generator.randint(4, 32))))
    return _records(named)


def cells(num_cells: int, per_cell: int, unit: int, seed: int) -> list[UsageRecord]:
    """Return the records of a chain of randomly wired cells, two inputs each, run depth first.

    Args:
        num_cells: Each reads the results of the two before it.
        per_cell: Operators of a cell, the join at its end aside.
        unit: Bytes that all sizes are multiples of.
        seed: Decides the wiring and the channels of each result.
    """
    generator = random.Random(seed)
    sizes: list[int] = [unit * 24, unit * 24]
    last_use = [0, 0]
    joined = [0, 1]
    step = 2
    for _ in range(num_cells):
        inside = list(joined[-2:])
        first = len(sizes)
        for _ in range(per_cell):
            for source in generator.sample(inside, min(len(inside), generator.randint(1, 2))):
                last_use[source] = step
            inside.append(len(sizes))
            sizes.append(unit * generator.choice((3, 5, 8, 12, 16, 20, 27, 32)))
            last_use.append(step)
            step += 1
        for result in range(first, len(sizes)):
            if last_use[result] == result:
                last_use[result] = step
        joined.append(len(sizes))
        sizes.append(unit * 24)
        last_use.append(step)
        step += 1
    return _records(
        (f"t{index}", (index, max(last_use[index], index) + 1, size))
        for index, size in enumerate(sizes)
    )


def _pinwheel(piece: Piece, generator: random.Random) -> Sequence[Piece]:
    """Return a piece as four arms round a fifth."""
    start, end, size = piece
    left = generator.randint(start + 1, end - 2)
    right = generator.randint(left + 1, end - 1)
    low = generator.randint(1, size - 2)
    high = generator.randint(low + 1, size - 1)
    return (
        (start, right, low),
        (right, end, high),
        (left, end, size - high),
        (start, left, size - low),
        (left, right, high - low),
    )


def _area(piece: Piece) -> int:
    start, end, size = piece
    return (end - start) * size


def _records(named: Iterable[tuple[str, Piece]]) -> list[UsageRecord]:
    return [UsageRecord(name, size, start, end) for name, (start, end, size) in named]


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
