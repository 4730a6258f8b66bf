"""The result of a search: a program with its plan and its predicted time."""

from dataclasses import dataclass
from typing import Self, TypeVar

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.strategy import Placer
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import Rules
from arenite.planner.rewrites.derivation import Derivation, derive
from arenite.planner.tensors import SPILLED

Note = TypeVar("Note")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that a search found.

    Attributes:
        program: The program, its steps in order and its storage shared.
        problem: Its records.
        plan: Where they lie.
        seconds: Predicted time of a run.
        unshared: The program before its storage was shared, for further rewrites.
        before: The program that the search started from, by the same prediction; None if this
            is it.
        notes: How it was made, each of a class of its own.
    """

    program: Program
    problem: Problem
    plan: Plan
    seconds: float
    unshared: Program
    before: "Candidate | None" = None
    notes: tuple[object, ...] = ()

    @classmethod
    def of(
        cls,
        unshared: Program,
        rules: Rules,
        place: Placer,
        seconds: float,
        before: "Candidate | None" = None,
        notes: tuple[object, ...] = (),
    ) -> Self:
        """Return a program as a candidate, its storage shared and its records placed."""
        found = derive(unshared, rules)
        plan = place(found.problem)
        return cls(found.program, found.problem, plan, seconds, unshared, before, notes)

    @property
    def derivation(self) -> Derivation:
        """The program and its records."""
        return Derivation(self.program, self.problem)

    @property
    def whole(self) -> "Candidate":
        """The program that the search started from."""
        return self if self.before is None else self.before

    @property
    def height(self) -> int:
        """Bytes of the arena; spilled tensors lie elsewhere."""
        return self.plan.height - self.spilled

    @property
    def spilled(self) -> int:
        """Bytes of the memory that tensors are spilled to."""
        names = [memory.name for memory in self.problem.memories]
        return self.plan.heights[names.index(SPILLED)] if SPILLED in names else 0

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of a run."""
        steps = self.program.steps
        return sum(step.operator.multiply_adds(self.program.operands(step)) for step in steps)

    @property
    def multiply_adds_ratio(self) -> float:
        """Multiply-adds over those of the whole program."""
        whole = self.whole.multiply_adds
        return self.multiply_adds / whole if whole else 1.0

    @property
    def num_turns(self) -> int:
        """Steps that run, each band of a step counted."""
        return len(self.program.steps)

    @property
    def slowdown(self) -> float:
        """Predicted time over that of the whole program, less 1."""
        whole_s = self.whole.seconds
        return self.seconds / whole_s - 1 if whole_s else 0.0

    def note(self, kind: type[Note]) -> Note | None:
        """Return the note of a class, None if there is none."""
        return next((each for each in self.notes if isinstance(each, kind)), None)
