"""TiGrIS, a compiler for budgets of memory: the package `tigris-ml`, run as a program."""

import json
import subprocess
from pathlib import Path
from typing import Final

BUDGETS_KIB: Final = (
    2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 96, 128, 192, 256, 512, 1024, 2048,
)  # fmt: skip
"""Fast memories that it is asked about."""


def tigris_bytes(program: str | None, path: Path) -> int:
    """Return the least fast and slow memory that TiGrIS states, 0 if it states none.

    Args:
        program: Its program; None if it is not asked.
        path: The model.
    """
    if program is None:
        return 0
    found = []
    for budget in BUDGETS_KIB:
        done = subprocess.run(
            [program, "analyze", "-m", f"{budget}K", "--json", path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            continue
        stated = json.loads(done.stdout)
        if stated["fast"]["verdict"] in ("ok", "tiled") and stated["slow"]["fits"]:
            found.append(stated["fast"]["scheduled_peak_bytes"] + stated["slow"]["peak_bytes"])
    return min(found, default=0)
