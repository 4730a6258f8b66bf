"""ExecuTorch: our placement as the algorithm of its `MemoryPlanningPass`."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.targets.executorch.planning import MemoryPlanning, memory_planning
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = ["MemoryPlanning", "memory_planning"]
