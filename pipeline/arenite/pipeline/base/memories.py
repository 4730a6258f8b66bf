"""Models whose tensors are spread over several memories."""

import time
from collections.abc import Sequence

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.placing import Outcome, place
from arenite.planner import Plan, PlanFile, Problem, Source, Strategy, verify
from arenite.planner.programs import CostedMemory, assigned, traffic_of
from arenite.strategies import Spread, spread


def spread_over(
    source: Source,
    memories: Sequence[CostedMemory],
    strategy: Strategy,
    limits: SearchLimits = UNLIMITED,
) -> tuple[Source, Outcome, Spread]:
    """Return a source with its records in these memories, and their plan.

    Raises:
        PlanError: There is no room, or none was found.
    """
    interrupted = False

    def place_one(problem: Problem) -> Plan:
        nonlocal interrupted
        outcome = place(strategy, problem, limits)
        interrupted |= outcome.interrupted
        return outcome.plan

    started = time.perf_counter()
    traffic = traffic_of(source.problem, source.program)
    found = spread(source.problem, memories, traffic, place_one)
    verify(found.problem, found.plan)
    seconds = time.perf_counter() - started
    return (
        source.with_problem(found.problem),
        Outcome(found.plan, seconds, interrupted=interrupted),
        found,
    )


def spread_as(source: Source, plan_file: PlanFile) -> Source:
    """Return a source with its records in the memories of a plan, if that has several.

    Records that the plan does not have lie in the first; `PlanFile.check_against` tells of them.
    """
    planned = plan_file.problem
    if len(planned.memories) == len(source.problem.memories):
        return source
    memory_of = {record.name: record.memory for record in planned.records}
    first = planned.memories[0].name
    everywhere = {
        record.name: memory_of.get(record.name, first) for record in source.problem.records
    }
    return source.with_problem(assigned(source.problem, planned.memories, everywhere))
