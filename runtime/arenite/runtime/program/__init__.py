"""The program file of the native core: steps over tensors at their planned places."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.program.assembling import Code, assemble
    from arenite.runtime.program.file import Assembly, Weights, program_pieces, write_assembly
    from arenite.runtime.program.rows import starts_of_rows
    from arenite.runtime.program.systems import system_of
    from arenite.runtime.program.touching import (
        Root,
        rectangles_of,
        root_of,
        run_of,
        stage_runs_of,
        turns_of,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Assembly", "Code", "Root", "Weights", "assemble", "program_pieces", "rectangles_of",
    "root_of", "run_of", "stage_runs_of", "starts_of_rows", "system_of", "turns_of",
    "write_assembly",
]  # fmt: skip
