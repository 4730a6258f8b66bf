"""What was read from a model file: the problem and, unless it is a CSV, the program."""

from dataclasses import dataclass, replace
from typing import Self

from arenite.planner.derive import Derivation
from arenite.planner.ordering import Order
from arenite.planner.problem import Problem
from arenite.planner.program import Program
from arenite.planner.several_memories import in_memories


@dataclass(frozen=True, slots=True)
class Source:
    """A model file as it was read.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        program: The program in its final order, its storage shared; None for a file that only
            lists records.
        problem: The records to place.
        order: The result of the search for an order; None if the file's own was kept.
    """

    name: str
    digest: str
    program: Program | None
    problem: Problem
    order: Order | None = None

    @classmethod
    def derived(cls, name: str, digest: str, derivation: Derivation) -> Self:
        """Return a source whose program and records are those derived from the file's."""
        return cls(name, digest, derivation.program, derivation.problem, derivation.order)

    def with_problem(self, problem: Problem) -> Self:
        """Return the source with its records in other memories, and its tensors with them.

        Args:
            problem: The same records, as `arenite.planner.several_memories.assigned` returns
                them.
        """
        program = None if self.program is None else in_memories(self.program, problem)
        return replace(self, program=program, problem=problem)
