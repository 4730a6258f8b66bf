"""Greedy by size for objects: the largest record first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import UsageRecord
from arenite.strategies.share.best_fit_object import assign_best_fit
from arenite.strategies.share.objects import ObjectSharing


@dataclass(frozen=True, slots=True)
class ObjectsBySize(ObjectSharing):
    """Take records by non-increasing size, equal sizes in the problem's order.

    An object is as large as its first tenant, so none ever grows.
    """

    name: ClassVar[str] = "objects-by-size"
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n)"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 2"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record."""
        order = sorted(range(len(records)), key=lambda index: -records[index].size)
        return assign_best_fit(records, order)
