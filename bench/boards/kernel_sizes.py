"""The bytes of instructions of each function of the C kernels on a Cortex-M4.

`python -m bench.boards.kernel_sizes` writes them into the table that exports estimate flash by.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from arenite.runtime.cexport import kernels
from bench.boards.board import board
from bench.harness.inputs import CHECKOUT

TABLE: Final = CHECKOUT / "runtime/arenite/runtime/cexport/kernels/sizes.txt"
_INCLUDES: Final = ("stddef", "stdint", "string", "math", "float")


def measured() -> Mapping[str, int]:
    """Return the bytes of each function, compiled with its kernel alone; the most of several.

    Kernels that call CMSIS-NN are left out.
    """
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as made:
        for kernel in kernels.names():
            if kernel.startswith("cmsis_"):
                continue
            for name, size in _functions(kernel, Path(made)).items():
                found[name] = max(size, found.get(name, 0))
    return dict(sorted(found.items()))


def _functions(kernel: str, folder: Path) -> Mapping[str, int]:
    source = kernels.bundle([kernel])
    features = (f"#define {each} 0\n" for each in kernels.features_of(source))
    includes = (f"#include <{each}.h>\n" for each in _INCLUDES)
    kept = f"extern void *const kept;\nvoid *const kept = (void *){kernel};\n"
    path = folder / f"{kernel}.c"
    path.write_text("".join([*includes, *features, source, kept]), encoding="utf-8")
    target = board("mps2-an386")
    flags = (*target.flags, "-O2", "-std=c99", "-ffp-contract=off", "-w", "-c")
    subprocess.run([f"{target.tools}gcc", *flags, path, "-o", folder / "kernel.o"], check=True)
    listed = subprocess.run(
        [f"{target.tools}nm", "-S", folder / "kernel.o"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [line.split() for line in listed.splitlines()]
    return {
        row[3].split(".")[0]: int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT"
    }


def main() -> None:
    """Write the table."""
    lines = [f"{name} {size}\n" for name, size in measured().items()]
    head = (
        "# Bytes on a Cortex-M4 by gcc 12.2 -O2; written by python -m bench.boards.kernel_sizes\n"
    )
    TABLE.write_text("".join([head, *lines]), encoding="utf-8")


if __name__ == "__main__":
    main()
