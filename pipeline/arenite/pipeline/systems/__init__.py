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
    from arenite.pipeline.systems.litert import LitertSystem, interpret_system
    from arenite.pipeline.systems.planning import PlannedSystem, plan_system
    from arenite.pipeline.systems.tflm import (
        TflmMember,
        TflmSystem,
        plan_for_tflm,
        tflm_header,
        write_system_tflm,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Connection", "LitertSystem", "PlannedSystem", "SystemDescription", "SystemFileError",
    "SystemModel", "TflmMember", "TflmSystem", "interpret_system", "plan_for_tflm", "plan_system",
    "tflm_header", "write_system_c", "write_system_tflm",
]  # fmt: skip
