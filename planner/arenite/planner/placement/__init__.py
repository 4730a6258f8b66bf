"""The placement problem: records, plans, strategies, and the verification of plans."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.placement.outline import Stair
    from arenite.planner.placement.plan import ParameterValue, Plan, SharedObjects
    from arenite.planner.placement.problem import (
        LoadSpan,
        MovingPart,
        PermittedOverlap,
        Problem,
        Rectangle,
        UsageRecord,
        load_spans,
    )
    from arenite.planner.placement.size_verification import (
        MisplacedPartError,
        OversizedError,
        UndefinedSizeError,
        UnprovedSizeError,
        UnreachedSizeError,
        size_at,
        verify_sizes,
    )
    from arenite.planner.placement.strategy import (
        AbandonedError,
        Abandoning,
        Anytime,
        Placer,
        Strategy,
        StrategyKind,
        Watch,
        run,
        run_on_hulls,
        silent,
    )
    from arenite.planner.placement.verification import (
        MisalignedError,
        MovedError,
        NegativeOffsetError,
        OverCapacityError,
        OverlapError,
        WrongBoundError,
        WrongCountError,
        WrongHeightError,
        verify,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "AbandonedError", "Abandoning", "Anytime", "LoadSpan", "MisalignedError",
    "MisplacedPartError", "MovedError", "MovingPart", "NegativeOffsetError",
    "OverCapacityError", "OverlapError", "OversizedError", "ParameterValue", "PermittedOverlap",
    "Placer", "Plan", "Problem", "Rectangle", "SharedObjects", "Stair",
    "Strategy", "StrategyKind", "UndefinedSizeError", "UnprovedSizeError", "UnreachedSizeError",
    "UsageRecord", "Watch", "WrongBoundError", "WrongCountError", "WrongHeightError",
    "load_spans", "run", "run_on_hulls", "silent", "size_at", "verify", "verify_sizes",
]  # fmt: skip
