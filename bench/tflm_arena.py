"""The arena that TensorFlow Lite Micro needs, with its own plan and with ours.

    python bench/tflm_arena.py [--json] [MODEL.tflite ...]

Measured in the real interpreter, outputs compared bit for bit. Without arguments the models
are those in `../shared/models/tflite`, where present.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.runtime.targets.tflm.export import export_tflm
from arenite.strategies import find

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"


@dataclass(frozen=True)
class Row:
    """One model, in bytes; or why it was not measured.

    Attributes:
        model: Its file name.
        head: Of the arena, stock and ours.
        total: The same.
        smallest: The same, the smallest arena that works.
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


def main() -> int:
    """Print the table; exit 1 if ours is worse or computes something else anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    rows = [compare(path) for path in arguments.models or sorted(SHARED.glob("*.tflite"))]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(width=160).print(table(rows))
    return int(not all(row.not_measured or holds(row) for row in rows))


def holds(row: Row) -> bool:
    """Tell whether ours computes the same in no more memory."""
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


def table(rows: list[Row]) -> Table:
    """Return the rows for people."""
    result = Table(title="TensorFlow Lite Micro, 64-bit host: bytes, stock -> ours")
    result.add_column("model", no_wrap=True)
    for title in ("head", "bound", "total", "smallest arena", "scratch", "outputs"):
        result.add_column(title, justify="right")
    for row in rows:
        if row.not_measured:
            result.add_row(row.model, "-", "-", "-", "-", "-", "does not run")
            continue
        result.add_row(
            row.model,
            _change(row.head),
            f"{row.lower_bound:,}",
            _change(row.total),
            _change(row.smallest),
            str(row.scratch),
            "identical" if row.identical else "DIFFERENT",
        )
    return result


def _change(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} -> {pair[1]:,}" if pair[0] != pair[1] else f"{pair[0]:,}"


if __name__ == "__main__":
    sys.exit(main())
