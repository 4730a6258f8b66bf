"""ONNX models of floats as C source, ours and that of onnx2c, on an emulated Cortex-M4.

    python bench/c_onnx.py --onnx2c PROGRAM [--json] [--optimise=-O2] [MODEL ...]

Each model is exported with `arenite export --to c` and with onnx2c (github.com/kraiskil/onnx2c,
which you build), compiled, and run in QEMU. RAM is `.data`, `.bss`, the stack, painted and
measured, and the place of inputs and outputs: inside our arena, and beside onnx2c's variables,
since its caller hands them over. Outputs are compared with ONNX Runtime's. No board is measured,
and no cycle.

Without arguments the models are the LeNet-5 in `assets` and a MobileNet v1 of the zoo, 0.25 wide,
of 96 px.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from rich.table import Table

from boards.board import Board, board
from boards.build import BuildError, Subject, build
from boards.exported import exported
from boards.run import BoardError, run
from boards.sections import footprint
from harness import MissingInputsError, bench, emit, parser, table
from harness.inputs import CHECKOUT, zoo_file

LENET: Final = CHECKOUT / "assets" / "digits-lenet-5.onnx"
NETWORK: Final = "mobilenet-v1-0.25-96"
M4: Final = board("mps2-an386")
TOLERANCE: Final = 1e-4
"""Of outputs, in parts of the largest: sums run in another order."""
_ENTRY: Final = re.compile(r"^void entry\((.*)\)", re.MULTILINE)

Array = NDArray[Any]


@dataclass(frozen=True)
class Measured:
    """One program.

    Attributes:
        ram: Bytes of RAM in all.
        stack: Those of the stack.
        flash: Bytes of flash.
        instructions: Of an inference.
        distance: Largest difference of an output, in parts of the largest.
        not_measured: Why not; then the rest says nothing.
    """

    ram: int = 0
    stack: int = 0
    flash: int = 0
    instructions: int = 0
    distance: float = 0
    not_measured: str = ""


@dataclass(frozen=True)
class Row:
    """A model.

    Attributes:
        model: Its file name.
        ours: Our source.
        onnx2c: That of onnx2c.
    """

    model: str
    ours: Measured
    onnx2c: Measured


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if our outputs differ, or take more RAM than onnx2c's."""
    asked = parser(__doc__, models="a LeNet-5 and a small MobileNet v1")
    asked.add_argument("--onnx2c", metavar="PROGRAM", help="the program onnx2c")
    asked.add_argument("--optimise", default="-Os", help="compiler option (default: %(default)s)")
    options = asked.parse_args(arguments)
    if options.onnx2c is None:
        raise MissingInputsError("--onnx2c must name the program, built from its repository")
    if missing := M4.missing():
        raise MissingInputsError(f"no compiler or emulator of {M4.name}: {missing}")
    with tempfile.TemporaryDirectory(prefix="arenite-") as name:
        paths = options.models or [LENET, zoo_file(NETWORK, Path(name))]
        rows = [measured(path, options.onnx2c, options.optimise) for path in paths]
    emit(options, rows, shown(rows, options.optimise))
    return int(not all(map(holds, rows)))


def holds(row: Row) -> bool:
    """Tell whether our outputs are right, in no more RAM than those of onnx2c."""
    ours, theirs = row.ours, row.onnx2c
    is_right = not ours.not_measured and ours.distance <= TOLERANCE
    return is_right and (bool(theirs.not_measured) or ours.ram <= theirs.ram)


def measured(path: Path, program: str, optimise: str) -> Row:
    """Return the row of a model of one input and one output."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    shape = [each if isinstance(each, int) else 1 for each in port.shape]
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (expected,) = (np.asarray(each) for each in session.run(None, {port.name: given}))
    with tempfile.TemporaryDirectory(prefix="arenite-") as name:
        folder = Path(name)
        return Row(
            path.name,
            _tried(lambda: _ours(path, folder, given, expected, optimise)),
            _tried(lambda: _theirs(path, program, folder, given, expected, optimise)),
        )


def _tried(measure: Callable[[], Measured]) -> Measured:
    try:
        return measure()
    except subprocess.CalledProcessError as error:
        return Measured(not_measured=f"code {error.returncode}: {error.stderr.decode()[-200:]}")
    except (BuildError, BoardError) as error:
        return Measured(not_measured=str(error)[:200])


def _ours(path: Path, folder: Path, given: Array, expected: Array, optimise: str) -> Measured:
    done = subprocess.run(
        [sys.executable, "-m", "arenite", "export", path, "--to", "c", "-o", folder / "c",
         "--json"],
        capture_output=True, check=True,
    )  # fmt: skip
    # An image of several channels is stored with them last.
    stored = np.moveaxis(given, 1, -1) if given.ndim == 4 else given
    arena = json.loads(done.stdout)["arena_bytes"]
    subject = exported(folder / "c", optimised=(optimise,))
    return _on_board(M4, subject, folder / "ours", stored, expected, arena)


def _theirs(
    path: Path, program: str, folder: Path, given: Array, expected: Array, optimise: str
) -> Measured:
    done = subprocess.run([program, path], capture_output=True, check=True)
    source, header = folder / "model.c", folder / "model.h"
    source.write_bytes(done.stdout)
    entry = _ENTRY.search(done.stdout.decode())
    assert entry is not None
    header.write_text(
        f"#include <stdint.h>\nvoid entry({entry[1]});\n"
        "static inline int model_run(uint8_t *arena)\n"
        f"{{ entry((void *)arena, (void *)(arena + {given.nbytes})); return 0; }}\n"
    )
    ports = given.nbytes + expected.nbytes
    subject = Subject(
        [source], header, "model_run", str(ports), "8", [("arena", str(given.nbytes))],
        [(f"arena + {given.nbytes}", str(expected.nbytes))], flags=("-std=gnu99", "-w", optimise),
    )  # fmt: skip
    return _on_board(M4, subject, folder / "theirs", given, expected, ports)


def _on_board(
    target: Board, subject: Subject, folder: Path, given: Array, expected: Array, arena: int
) -> Measured:
    program = build(target, subject, folder)
    report, sizes = run(program, np.ascontiguousarray(given).tobytes()), footprint(program)
    report.require_sound()
    found = np.frombuffer(report.outputs, np.float32).reshape(expected.shape)
    return Measured(
        arena + sizes.data + sizes.bss + report.stack, report.stack, sizes.flash,
        report.instructions, float(np.abs(found - expected).max() / np.abs(expected).max()),
    )  # fmt: skip


def shown(rows: list[Row], optimise: str) -> Table:
    """Return the rows for people."""
    return table(
        f"ONNX models of floats as C source, gcc {optimise}, emulated Cortex-M4: bytes",
        ("model", "source", "RAM in all", "stack", "flash", "instructions", "from ONNX Runtime's"),
        (
            (row.model, name, *_cells(each))
            for row in rows
            for name, each in (("ours", row.ours), ("onnx2c", row.onnx2c))
        ),
    )


def _cells(found: Measured) -> tuple[str, ...]:
    if found.not_measured:
        return (f"not measured: {found.not_measured}", *[""] * 4)
    return (
        f"{found.ram:,}",
        f"{found.stack:,}",
        f"{found.flash:,}",
        f"{found.instructions / 1e6:.1f} M",
        f"{found.distance:.0e}",
    )


if __name__ == "__main__":
    sys.exit(main())
