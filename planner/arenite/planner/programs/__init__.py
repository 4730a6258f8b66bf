"""Programs, their costs, their records and their runs."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.programs.costs import LEAST, PCIE, PRESETS, SD_CARD, Budget, Costs, Link
    from arenite.planner.programs.diagnosis import Diagnosis, StepLoad, diagnose
    from arenite.planner.programs.equivalence import check_same_values
    from arenite.planner.programs.memories import (
        CostedMemory,
        Traffic,
        assigned,
        cost_of,
        costed,
        excess_of,
        in_memories,
        in_memory,
        traffic_of,
    )
    from arenite.planner.programs.ordering import (
        AnytimeOrder,
        FindOrder,
        Order,
        OrderStrategy,
        ShouldStop,
        never,
    )
    from arenite.planner.programs.policy import AnytimePolicy, Policy, assumption_of, is_exact
    from arenite.planner.programs.program import (
        COMPUTE,
        Array,
        Names,
        OperatorSet,
        Port,
        Program,
        Step,
    )
    from arenite.planner.programs.records import liveness
    from arenite.planner.programs.row_places import RowPlaces
    from arenite.planner.programs.row_steps import RowReads, RowStep, row_step, steps_by_rows
    from arenite.planner.programs.rules import (
        DEFAULT_ALIGNMENT,
        SAFE_KINDS,
        AliasKind,
        Boundary,
        Rules,
    )
    from arenite.planner.programs.run import (
        PlacedRows,
        Rows,
        Run,
        StageRun,
        TouchingTurn,
        run_of,
        stage_runs,
    )
    from arenite.planner.programs.run_verification import (
        OverwrittenRowsError,
        UnheldRowsError,
        UnwrittenRowsError,
        verify_run,
    )
    from arenite.planner.programs.system import Section, SectionKind, Stage, System
    from arenite.planner.programs.uses import Lifetime, Uses
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "COMPUTE", "DEFAULT_ALIGNMENT", "LEAST", "PCIE", "PRESETS", "SAFE_KINDS", "SD_CARD",
    "AliasKind", "AnytimeOrder", "AnytimePolicy", "Array", "Boundary", "Budget", "CostedMemory",
    "Costs", "Diagnosis", "FindOrder", "Lifetime", "Link", "Names", "OperatorSet", "Order",
    "OrderStrategy", "OverwrittenRowsError", "PlacedRows", "Policy", "Port", "Program",
    "RowPlaces", "RowReads", "RowStep", "Rows", "Rules", "Run", "Section", "SectionKind",
    "ShouldStop", "Stage", "StageRun", "Step", "StepLoad", "System", "TouchingTurn", "Traffic",
    "UnheldRowsError", "UnwrittenRowsError", "Uses", "assigned", "assumption_of",
    "check_same_values", "cost_of", "costed", "diagnose", "excess_of", "in_memories", "in_memory",
    "is_exact", "liveness", "never", "row_step", "run_of", "stage_runs", "steps_by_rows",
    "traffic_of", "verify_run",
]  # fmt: skip
