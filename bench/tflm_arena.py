"""The arena that TensorFlow Lite Micro needs, with its own plan and with ours.

    python bench/tflm_arena.py [--json] [MODEL.tflite ...]

Measured in the real interpreter, outputs compared bit for bit. Without arguments the models
are those in `../shared/models/tflite`, where present.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.runtime.targets.tflm import export_tflm
from arenite.strategies import find
from harness import bench, emit, parser, table
from harness.inputs import TFLITE_MODELS, required, shared_tflite


@dataclass(frozen=True)
class Row:
    """One model, in bytes; or why it was not measured.

    Attributes:
        model: Its file name.
        head: Of the arena, stock and ours.
        total: Of the arena, stock and ours.
        smallest: The smallest arena that works, stock and ours.
        lower_bound: Of the head.
        scratch: Operators whose kernels ask for scratch.
        identical: Outputs on random inputs, bit for bit.
        not_measured: Why not; then the rest is 0.
    """

    model: str
    head: tuple[int, int] = (0, 0)
    total: tuple[int, int] = (0, 0)
    smallest: tuple[int, int] = (0, 0)
    lower_bound: int = 0
    scratch: int = 0
    identical: bool = False
    not_measured: str = ""


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if ours is larger or its outputs differ anywhere."""
    options = parser(__doc__, models="those of ../shared/models/tflite").parse_args(arguments)
    paths = required(options.models or shared_tflite(), TFLITE_MODELS)
    rows = [compare(path) for path in paths]
    emit(options, rows, shown(rows))
    return int(not all(row.not_measured or holds(row) for row in rows))


def holds(row: Row) -> bool:
    """Tell whether ours gives the same outputs in no more memory."""
    return row.identical and all(
        ours <= stock for stock, ours in (row.head, row.total, row.smallest)
    )


def compare(path: Path) -> Row:
    """Return the row of a model."""
    try:
        export = export_tflm(path, find("best"), find("tflm"))
    except AreniteError as error:
        return Row(path.name, not_measured=str(error))
    if export.measured is None:
        return Row(path.name, not_measured=export.not_measured)
    stock, ours = export.measured.stock, export.measured.planned
    return Row(
        path.name,
        (stock.head, ours.head),
        (stock.total, ours.total),
        (stock.smallest, ours.smallest),
        export.plan.lower_bound,
        len(export.measured.scratch),
        stock.outputs == ours.outputs,
    )


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "TensorFlow Lite Micro, 64-bit host: bytes, stock -> ours",
        ("model", "head", "bound", "total", "smallest arena", "scratch", "outputs"),
        (
            (row.model, "-", "-", "-", "-", "-", "does not run")
            if row.not_measured
            else (
                row.model,
                _change(row.head),
                f"{row.lower_bound:,}",
                _change(row.total),
                _change(row.smallest),
                str(row.scratch),
                "identical" if row.identical else "DIFFERENT",
            )
            for row in rows
        ),
    )


def _change(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} -> {pair[1]:,}" if pair[0] != pair[1] else f"{pair[0]:,}"


if __name__ == "__main__":
    sys.exit(main())
