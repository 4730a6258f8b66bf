"""Strategies of third parties, registered by the entry point group `arenite.strategies`."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from arenite.planner.strategy import Strategy

ENTRY_POINT_GROUP = "arenite.strategies"


@cache
def registered() -> tuple[tuple[str, Strategy], ...]:
    """Return the strategies that installed packages register, each with its origin.

    Raises:
        ValueError: A registered object is not a strategy.
    """
    found = entry_points(group=ENTRY_POINT_GROUP)
    return tuple((entry_point.value, _load(entry_point)) for entry_point in found)


def _load(entry_point: EntryPoint) -> Strategy:
    loaded = entry_point.load()
    strategy = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(strategy, Strategy):
        raise ValueError(f"entry point {entry_point.value!r} is not a strategy")
    return strategy
