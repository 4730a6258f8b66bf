"""ExecuTorch: our placement as the algorithm of its `MemoryPlanningPass`."""

from arenite.runtime.targets.executorch.planning import MemoryPlanning, memory_planning

__all__ = ["MemoryPlanning", "memory_planning"]
