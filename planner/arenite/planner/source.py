"""What was read from a model file: the graph if it holds one, and the problem."""

from dataclasses import dataclass

from arenite.planner.graph import Graph
from arenite.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class Source:
    """A model file as it was read.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        graph: None where the file states the records alone.
        problem: The records to place.
    """

    name: str
    digest: str
    graph: Graph | None
    problem: Problem
