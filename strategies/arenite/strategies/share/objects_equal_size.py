"""Objects reused only by records of exactly their size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import UsageRecord
from arenite.strategies.share.equal_objects import EqualObjects
from arenite.strategies.share.free_objects import share_over_time
from arenite.strategies.share.objects import ObjectSharing, order_of_use


@dataclass(frozen=True, slots=True)
class ObjectsEqualSize(ObjectSharing):
    """Walk records in order of use; reuse a free object of the same size, last freed first."""

    name: ClassVar[str] = "objects-equal-size"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = "TFLite's GPU delegate, EQUALITY"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record."""
        free = EqualObjects(lambda record: record.size)
        return share_over_time(records, order_of_use(records), free)
