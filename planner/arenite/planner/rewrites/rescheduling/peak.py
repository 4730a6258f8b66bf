"""How bytes are counted where a program is fitted to a budget.

Views share storage, program inputs and outputs lie in the arena, nothing else shares: a step that
runs again needs its operands whole, and what derivation shares later only helps.
"""

from arenite.planner.liveness import DEFAULT_ALIGNMENT, liveness
from arenite.planner.problem import Problem
from arenite.planner.program import Program
from arenite.planner.rewrites.aliasing import AliasKind, share

ALIGNMENT = DEFAULT_ALIGNMENT
"""Bytes that every size is a multiple of."""


def with_views(program: Program) -> Program:
    """Return the program with its views in the storage of what they view."""
    return share(program, (AliasKind.VIEWS,))


def problem_of(program: Program) -> Problem:
    """Return the records of a program whose views share storage."""
    return liveness(with_views(program), alignment=ALIGNMENT)


def peak_of(program: Program) -> int:
    """Return the most bytes live at once in the memory that steps compute in.

    That is the lower bound of every plan of the program, in its order.
    """
    return problem_of(program).lower_bounds[0]
