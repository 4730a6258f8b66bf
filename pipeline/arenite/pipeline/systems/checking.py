"""The check of a planned system for every order that its schedule allows."""

from dataclasses import replace

from arenite.pipeline.making.schedule_checks import check_stages
from arenite.planner import Plan, Problem, Program, TensorKind
from arenite.planner.placement import Rectangle
from arenite.planner.programs import PlacedRows, Rows, Run, StageRun, run_of, stage_runs


def check_orders(program: Program, problem: Problem, plan: Plan) -> None:
    """Check the plan of a system for every order that its schedule allows.

    Args:
        program: A program of several models, its storage shared.
        problem: Its records.
        plan: Their offsets.

    Raises:
        InvalidPlanError: A model may overwrite what another needs.
    """
    assert program.system is not None
    # Results may lie over operands that they consume, so records do not tell what is live.
    everywhere = [
        Rectangle(each.name, each.name, 0, height, 0, len(program.steps))
        for each, height in zip(problem.memories, plan.heights, strict=True)
    ]
    check_stages(_runs(program, problem, plan), everywhere, program.system.schedule)


def _runs(program: Program, problem: Problem, plan: Plan) -> list[StageRun]:
    assert program.system is not None
    states = [name for name, each in program.tensors.items() if each.kind is TensorKind.STATE]
    inputs, outputs = (
        [(port.name, port.tensor) for port in each] for each in (program.inputs, program.outputs)
    )
    whole = _with_working_memory(run_of(program, problem, plan), problem, plan)
    return list(stage_runs(whole, program.system, inputs, outputs, states))


def _with_working_memory(run: Run, problem: Problem, plan: Plan) -> Run:
    """Return a run whose steps write their working memory too: records without tensors."""
    tensors, turns = list(run.tensors), list(run.turns)
    for record, offset in zip(problem.records, plan.offsets, strict=True):
        if not record.tensors:
            tensors.append(PlacedRows(record.name, record.memory, record.size, (offset,)))
            turn = turns[record.start]
            writes = (*turn.writes, Rows(record.name, 0, 1))
            turns[record.start] = replace(turn, writes=writes)
    return replace(run, tensors=tuple(tensors), turns=tuple(turns))
