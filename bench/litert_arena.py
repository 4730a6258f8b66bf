"""The arena of stock LiteRT beside ours, on the same models, outputs compared bit for bit.

    python bench/litert_arena.py [--json] [MODEL.tflite ...]

Each model runs in a fresh process, because some crash the stock runtime. Every arena
tensor, kernel scratch included, is looked up in the running interpreter. Without arguments
the models are those in `../shared/models/tflite`, where present.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.runtime.targets.litert import PlannedInterpreter, load_interpreter
from arenite.strategies import find
from harness import ProcessError, bench, emit, in_fresh_process, parser, table
from harness.inputs import TFLITE_MODELS, required, shared_tflite

NUM_RUNS = 3
SEED = 0


@dataclass(frozen=True)
class Row:
    """One model, in bytes; or why it does not run.

    Attributes:
        model: Its file name.
        stock: The arena that LiteRT lays out itself.
        kept: Ours with graph inputs left alone, as in stock.
        planned: Ours with graph inputs reused after their last use.
        lower_bound: Of `planned`.
        num_tensors: Arena tensors, scratch included.
        inside: Those of them found in our buffer.
        identical: Outputs on random inputs, bit for bit, of both plans.
        refused: Why the stock runtime does not run it; then the rest is 0.
    """

    model: str
    stock: int = 0
    kept: int = 0
    planned: int = 0
    lower_bound: int = 0
    num_tensors: int = 0
    inside: int = 0
    identical: bool = False
    refused: str = ""


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a claim fails on a model that the stock runtime runs."""
    options = parser(__doc__, models="those of ../shared/models/tflite").parse_args(arguments)
    paths = required(options.models or shared_tflite(), TFLITE_MODELS)
    rows = [isolated(path) for path in paths]
    emit(options, rows, shown(rows))
    return int(not all(row.refused or holds(row) for row in rows))


def holds(row: Row) -> bool:
    """Tell whether the outputs are the stock's, from tensors in an arena no larger."""
    return (
        row.identical and row.inside == row.num_tensors and max(row.kept, row.planned) <= row.stock
    )


def isolated(path: Path) -> Row:
    """Return the row of a model, measured in a fresh process."""
    try:
        return in_fresh_process(compare, path)
    except ProcessError as error:
        return Row(path.name, refused=str(error))


def compare(path: Path) -> Row:
    """Return the row of a model."""
    try:
        stock = load_interpreter(path, 1)
        stock.allocate_tensors()
    except (AreniteError, RuntimeError) as error:
        return Row(path.name, refused=str(error).splitlines()[0][:200])
    kept, planned = (
        PlannedInterpreter(path, strategy=find("best"), keep_inputs=keep) for keep in (True, False)
    )
    identical = outputs(stock) == outputs(kept) == outputs(planned)
    if planned.plan is None or kept.plan is None:
        return Row(path.name, refused="the stock placement stays", identical=identical)
    places = planned.tensor_addresses()
    first = planned.arena.ctypes.data
    inside = [first <= at and at + size <= first + planned.arena.size for at, size in places]
    return Row(
        path.name,
        planned.stock_bytes or 0,
        kept.plan.height,
        planned.plan.height,
        planned.plan.lower_bound,
        len(inside),
        sum(inside),
        identical,
    )


def outputs(interpreter: Any) -> list[bytes]:
    """Return the outputs of consecutive runs on the same random inputs."""
    random = np.random.default_rng(SEED)
    result = []
    for _ in range(NUM_RUNS):
        for each in interpreter.get_input_details():
            interpreter.set_tensor(each["index"], drawn(random, each["shape"], each["dtype"]))
        interpreter.invoke()
        for each in interpreter.get_output_details():
            result.append(interpreter.get_tensor(each["index"]).tobytes())
    return result


def drawn(random: np.random.Generator, shape: Any, dtype: Any) -> Any:
    """Return random elements, over the whole range of an integer type."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return random.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    return random.standard_normal(shape).astype(kind)


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "CPU arena in bytes, kernel scratch included, alignment 64",
        ("model", "stock", "inputs kept", "ours", "against stock", "bound", "inside", "outputs"),
        (
            (row.model, *"------", "does not run in stock")
            if row.refused
            else (
                row.model,
                f"{row.stock:,}",
                f"{row.kept:,}",
                f"{row.planned:,}",
                f"{row.planned / row.stock - 1:+.1%}",
                f"{row.lower_bound:,}",
                f"{row.inside}/{row.num_tensors}",
                "identical" if row.identical else "DIFFERENT",
            )
            for row in rows
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
