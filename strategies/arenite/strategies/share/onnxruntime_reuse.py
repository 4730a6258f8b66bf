"""ONNX Runtime's buffer reuse: the buffer freed last that has exactly the shape."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import UsageRecord
from arenite.strategies.share.equal_objects import EqualObjects
from arenite.strategies.share.free_objects import share_over_time
from arenite.strategies.share.objects import ObjectSharing, order_of_use


@dataclass(frozen=True, slots=True)
class OnnxruntimeReuse(ObjectSharing):
    """Walk records in execution order; reuse the last freed of equal shape and element size.

    A larger buffer is never considered, and scalars share with nothing. Where the shape is
    unknown the size stands for it. Outputs that take over an input's buffer are not
    decided here: a graph says so by an alias. Upstream's memory pattern is the strategy
    `onnxruntime-pattern`.
    """

    name: ClassVar[str] = "onnxruntime-reuse"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = "ONNX Runtime, static plan in allocation_planner.cc"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record."""
        return share_over_time(records, order_of_use(records), EqualObjects(_likeness))


def _likeness(record: UsageRecord) -> Hashable | None:
    is_scalar = len(record.layout) == 1
    return None if is_scalar else (record.layout, record.size)
