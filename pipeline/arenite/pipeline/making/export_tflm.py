"""Models with our plan inside, for TensorFlow Lite Micro."""

from pathlib import Path

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.placing import place
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import Strategy
from arenite.runtime.targets.tflm.export import TflmExport, export_tflm
from arenite.strategies import find


def export_for_tflm(
    model: Path, strategy: Strategy, limits: SearchLimits = UNLIMITED
) -> TflmExport:
    """Return the model with the better of the strategy's plan and the interpreter's own.

    Raises:
        AreniteError: It cannot be planned.
    """

    def plan(problem: Problem) -> Plan:
        return place(strategy, problem, limits).plan

    return export_tflm(model, plan, find("tflm"))
