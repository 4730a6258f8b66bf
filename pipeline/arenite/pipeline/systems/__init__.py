"""Several models in one arena: described, joined into one program, placed."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.systems.description import (
        Connection,
        SystemDescription,
        SystemFileError,
        SystemModel,
    )
    from arenite.pipeline.systems.exporting import write_system_c
    from arenite.pipeline.systems.planning import PlannedSystem, plan_system
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Connection", "PlannedSystem", "SystemDescription", "SystemFileError", "SystemModel",
    "plan_system", "write_system_c",
]  # fmt: skip
