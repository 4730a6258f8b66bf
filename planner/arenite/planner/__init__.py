"""Read a model, derive what must be placed, check the plan and write it down.

The way through::

    model file -> importers -> Program -> rewrites -> derive -> Problem
               -> a strategy -> Plan -> verify -> plan file

The names here and in the packages below that have an `__all__` are public: other packages import
nothing else. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.errors import AreniteError
    from arenite.planner.importers.models import (
        Dims,
        InputValues,
        RangedShapes,
        Shapes,
        Source,
        load,
        model_format,
        open_names,
        open_shapes,
        read,
    )
    from arenite.planner.placement.outline import Stair
    from arenite.planner.placement.plan import ParameterValue, Plan, SharedObjects
    from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
    from arenite.planner.placement.strategy import Strategy, StrategyKind
    from arenite.planner.placement.verification import verify
    from arenite.planner.planfile.contents import PlanFile
    from arenite.planner.programs.costs import LEAST, Budget, Costs, Link
    from arenite.planner.programs.diagnosis import Diagnosis, diagnose
    from arenite.planner.programs.ordering import FindOrder, Order, ShouldStop
    from arenite.planner.programs.policy import Policy
    from arenite.planner.programs.program import Array, Port, Program, Step
    from arenite.planner.programs.records import liveness
    from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, AliasKind, Boundary, Rules
    from arenite.planner.rewrites.candidate import Candidate
    from arenite.planner.rewrites.derivation import Derivation, derive
    from arenite.planner.tensors import Alias, DType, Memory, Quantisation, Tensor, TensorKind
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "DEFAULT_ALIGNMENT", "LEAST", "Alias", "AliasKind", "AreniteError", "Array", "Boundary",
    "Budget", "Candidate", "Costs", "DType", "Derivation", "Diagnosis", "Dims", "FindOrder",
    "InputValues", "Link", "Memory", "Order", "ParameterValue", "PermittedOverlap", "Plan",
    "PlanFile", "Policy", "Port", "Problem", "Program", "Quantisation", "RangedShapes", "Rules",
    "Shapes", "SharedObjects", "ShouldStop", "Source", "Stair", "Step", "Strategy", "StrategyKind",
    "Tensor", "TensorKind", "UsageRecord", "derive", "diagnose", "liveness", "load",
    "model_format", "open_names", "open_shapes", "read", "verify",
]  # fmt: skip
