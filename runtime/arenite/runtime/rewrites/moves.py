"""Let a program that a policy made run here: what it moves or rounds becomes steps of ours."""

from dataclasses import replace

from arenite.planner.operators import moving, rounding
from arenite.planner.program import COMPUTE, Program, Step
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.moving import Fetch, Spill, Wait

BESIDE = "moves"
"""The lane of our runtime that carries tensors beside the computation: one, for both ways."""


def lower_moves(program: Program) -> Program:
    """Return the program with its moves, waits and roundings as our runtime runs them.

    All bytes of a tensor are moved, whatever a policy expected of coding them on the way.
    """
    steps = tuple(_lowered(step) for step in program.steps)
    return program if steps == program.steps else replace(program, steps=steps)


def _lowered(step: Step) -> Step:
    lane = COMPUTE if step.lane == COMPUTE else BESIDE
    operator: RuntimeOperator
    match step.operator:
        case moving.Spill():
            operator = Spill()
        case moving.Fetch():
            operator = Fetch()
        case moving.Wait():
            operator = Wait()
        case rounding.Narrow() | rounding.Widen():
            operator = Convert()
        case _:
            return step
    return replace(step, operator=operator, lane=lane)
