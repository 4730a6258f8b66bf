"""The arena plan file, specified in `docs/plan-file.md`.

Every field of a file is checked and its plan verified before `read` returns it.
"""

from pathlib import Path

from arenite.planner.files import write_atomically
from arenite.planner.planfile.bands import Bands
from arenite.planner.planfile.contents import ModelReference, PlanFile
from arenite.planner.planfile.reading import read

__all__ = ["Bands", "ModelReference", "PlanFile", "read", "write"]


def write(path: Path, plan_file: PlanFile) -> None:
    """Write the plan file whole or not at all.

    Raises:
        OutputError: It cannot be written; an existing file is unchanged.
    """
    write_atomically(path, plan_file.to_bytes())
