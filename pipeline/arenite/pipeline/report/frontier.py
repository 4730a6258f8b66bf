"""The frontier of memory against time of one model, light enough to be kept for many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from arenite.pipeline.report.row_map import RowMap
from arenite.planner import Candidate, Source
from arenite.strategies import binding_of


@dataclass(frozen=True, slots=True)
class Point:
    """A program of a frontier, in figures.

    Attributes:
        height: Bytes of its arena.
        multiply_adds_ratio: Multiply-adds over those of the whole program.
        turns: Steps that run, each band of one counted.
        slowdown: Predicted time over that of the whole program, less 1.
    """

    height: int
    multiply_adds_ratio: float
    turns: int
    slowdown: float

    @classmethod
    def of(cls, fit: Candidate) -> Self:
        """Return the figures of a program."""
        return cls(fit.height, fit.multiply_adds_ratio, fit.num_turns, fit.slowdown)

    def as_json(self) -> dict[str, Any]:
        """Return them by the keys that `arenite fit` has."""
        return {
            "height": self.height,
            "macs_ratio": self.multiply_adds_ratio,
            "bytes_moved": 0,
            "steps": self.turns,
            "predicted_slowdown": self.slowdown,
        }


@dataclass(frozen=True, slots=True)
class Frontier:
    """The arenas of a model, whole and in bands of rows.

    Attributes:
        points: The whole program first, then ever lower ones.
        least: Memory map of the last.
        binding: The tensors that limit it, a sentence; empty if nothing is live.
        costs: Whose costs predict times.
    """

    points: tuple[Point, ...]
    least: RowMap
    binding: str
    costs: str

    @classmethod
    def of(cls, fits: Sequence[Candidate], costs: str) -> Self:
        """Return the figures of programs and the map of the last."""
        last = fits[-1]
        binding = binding_of(last)
        return cls(
            tuple(map(Point.of, fits)),
            map_of(last),
            "" if binding is None else f"The least is limited by: {binding}.",
            costs,
        )


def maps_of(fits: Sequence[Candidate]) -> list[tuple[str, RowMap]]:
    """Return titles and memory maps of the ends of a frontier."""
    ends = {"Whole": fits[0]} | ({"Least": fits[-1]} if len(fits) > 1 else {})
    return [(title, map_of(fit)) for title, fit in ends.items()]


def map_of(candidate: Candidate) -> RowMap:
    return RowMap.of(Source.derived("", "", candidate.derivation), candidate.plan)
