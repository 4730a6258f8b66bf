"""How bytes are counted where a program is fitted to a budget."""

from arenite.planner.liveness import liveness
from arenite.planner.program import Program
from arenite.planner.rewrites.aliasing import AliasKind, share
from arenite.planner.rules import Rules

RULES = Rules(aliases=(AliasKind.VIEWS,))
"""Views share storage, program inputs and outputs lie in the arena, nothing else shares: a step
that runs again needs its operands whole, and what derivation shares later only helps."""


def with_views(program: Program) -> Program:
    """Return the program with its views in the storage of what they view."""
    return share(program, RULES.aliases, RULES.boundary, RULES.alignment)


def peak_of(program: Program) -> int:
    """Return the most bytes live at once in the memory that steps compute in.

    That is the lower bound of every plan of the program, in its order.
    """
    problem = liveness(with_views(program), boundary=RULES.boundary, alignment=RULES.alignment)
    return problem.lower_bounds[0]
