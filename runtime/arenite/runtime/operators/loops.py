"""Loops whose number of rounds depends on data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

from arenite.planner import Plan, Problem, Program
from arenite.planner.operators import Operands
from arenite.runtime.operators.base import RuntimeOperator

MAX_DEPTH = 8
"""How deep programs may lie inside one another."""


@dataclass(frozen=True, slots=True, eq=False)
class InnerProgram:
    """A program that a step runs, in the working memory of the step.

    Attributes:
        program: The program; once it is placed in its final order, its storage shared.
        problem: Its records; None until it is placed.
        plan: A verified plan of these.
        shifted: Tensors of bytes without a sign in the model, in C stored less 128.
    """

    program: Program
    problem: Problem | None = None
    plan: Plan | None = None
    shifted: frozenset[str] = frozenset()

    @property
    def height(self) -> int:
        """Bytes of its memory; 0 until it is placed."""
        return 0 if self.plan is None else self.plan.height

    @property
    def placed(self) -> tuple[Program, Problem, Plan]:
        """The program, its records and their plan."""
        assert self.problem is not None
        assert self.plan is not None
        return self.program, self.problem, self.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class While(RuntimeOperator):
    """Carries its inputs through the body for as long as the condition makes true.

    Both are programs among those that are `inner`, by index; each is of one step. They run in its
    working memory, one after the other. The outputs hold the carried values: the inputs at first,
    then what the body made of the last ones. Inputs of the condition and of the body are the
    carried values, in their order, and so are the outputs of the body; the condition makes one
    boolean.
    """

    number: ClassVar[int] = 67
    moves_halves: ClassVar[bool] = True

    condition: Annotated[InnerProgram, "uint"]
    body: Annotated[InnerProgram, "uint"]

    @property
    def inner(self) -> tuple[InnerProgram, InnerProgram]:
        """The programs that it runs."""
        return self.condition, self.body

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of the larger program: they run one after the other."""
        return max(each.height for each in self.inner)

    def multiply_adds(self, operands: Operands) -> int:
        """Return those of a single round."""
        return sum(each.program.multiply_adds for each in self.inner)

    def with_inner(self, change: Callable[[InnerProgram], InnerProgram]) -> Self:
        """Return the same with its programs changed."""
        return replace(self, condition=change(self.condition), body=change(self.body))


def with_inner(program: Program, change: Callable[[InnerProgram], InnerProgram]) -> Program:
    """Return a program with the programs inside its steps changed, itself if there are none."""
    if not inner_programs(program):
        return program
    steps = tuple(
        replace(step, operator=step.operator.with_inner(change))
        if isinstance(step.operator, While)
        else step
        for step in program.steps
    )
    return replace(program, steps=steps)


def inner_programs(program: Program) -> list[InnerProgram]:
    """Return the programs that the steps of a program run."""
    loops = (step.operator for step in program.steps if isinstance(step.operator, While))
    return [each for loop in loops for each in loop.inner]


def depth_of(program: Program) -> int:
    """Return how deep programs lie inside one another in a program; 0 if there are none."""
    return max((1 + depth_of(each.program) for each in inner_programs(program)), default=0)


def throughout(program: Program, rewrite: Callable[[Program], Program]) -> Program:
    """Return a program rewritten, and all programs inside it."""

    def inner(each: InnerProgram) -> InnerProgram:
        return InnerProgram(throughout(each.program, rewrite))

    return with_inner(rewrite(program), inner)
