"""Random fit: first fit in several random orders, the lowest plan kept."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import Plan, Problem, StrategyKind
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class RandomFit:
    """Place the records in random orders, each at the lowest free offset.

    Attributes:
        seed: Of the orders.
        attempts: Orders tried.
    """

    seed: int = 0
    attempts: int = 20

    name: ClassVar[str] = "random-fit"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "attempts x O(n^2 log n)"
    source: ClassVar[str] = "an example"
    quick: ClassVar[bool] = False

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return what it cannot do: respect offsets already decided."""
        if any(record.offset is not None for record in problem.records):
            return "moves records that are fixed"
        return None

    def __call__(self, problem: Problem) -> Plan:
        """Return the lowest plan of all attempts."""
        generator = random.Random(self.seed)
        order = list(range(len(problem.records)))
        parameters = {"seed": self.seed, "attempts": self.attempts}
        plans = []
        for _ in range(self.attempts):
            generator.shuffle(order)
            offsets = _first_fit(problem, order)
            plans.append(Plan.of(problem, offsets, self.name, parameters))
        return min(plans, key=lambda plan: plan.height)


def _first_fit(problem: Problem, order: Sequence[int]) -> tuple[int, ...]:
    records = problem.records
    offsets: dict[int, int] = {}
    for index in order:
        record = records[index]
        neighbours = sorted(
            (offset, offset + records[other].size)
            for other, offset in offsets.items()
            if records[other].meets(record)
        )
        lowest = 0
        for start, end in neighbours:
            if start - lowest >= record.size:
                break
            lowest = max(lowest, align_up(end, record.alignment))
        offsets[index] = lowest
    return tuple(offsets[index] for index in range(len(records)))
