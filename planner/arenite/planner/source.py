"""What was read from a model file: the program if it holds one, and the problem."""

from dataclasses import dataclass

from arenite.planner.ordering import Order
from arenite.planner.problem import Problem
from arenite.planner.program import Program


@dataclass(frozen=True, slots=True)
class Source:
    """A model file as it was read.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        program: In its order, its storage shared; None where the file states the records alone.
        problem: The records to place.
        order: How the order was found and what is proved of it; None for the file's own.
    """

    name: str
    digest: str
    program: Program | None
    problem: Problem
    order: Order | None = None
