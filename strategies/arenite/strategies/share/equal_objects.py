"""Free objects that go only to records like their last tenant."""

from collections.abc import Callable, Hashable

from arenite.planner.problem import UsageRecord


class EqualObjects:
    """A stack of free objects for each kind of record: last freed, first reused.

    Args:
        likeness: What two records must have in common; None for a record that shares
            with no other.
    """

    def __init__(self, likeness: Callable[[UsageRecord], Hashable | None]) -> None:
        self._likeness = likeness
        self._stacks: dict[Hashable, list[int]] = {}

    def take(self, record: UsageRecord) -> int | None:
        """Return the object freed last of those that fit exactly."""
        stack = self._stacks.get(self._likeness(record))
        return stack.pop() if stack else None

    def give_back(self, index: int, _size: int, tenant: UsageRecord) -> None:
        """Free the object for records like `tenant`."""
        likeness = self._likeness(tenant)
        if likeness is not None:
            self._stacks.setdefault(likeness, []).append(index)
