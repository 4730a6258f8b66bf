"""Greedy by breadth for objects: the heaviest step first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import UsageRecord
from arenite.strategies.orders import breadth_order
from arenite.strategies.share.best_fit_object import assign_best_fit
from arenite.strategies.share.objects import ObjectSharing


@dataclass(frozen=True, slots=True)
class ObjectsByBreadth(ObjectSharing):
    """Take records by the heaviest step they live at, the largest of a step first."""

    name: ClassVar[str] = "objects-by-breadth"
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n log n)"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 1"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record."""
        return assign_best_fit(records, breadth_order(records))
