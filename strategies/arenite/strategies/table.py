"""The table of strategies: being in it is enough to be tested, compared and offered.

Third parties add theirs by the entry point group `arenite.strategies`, one name each.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from arenite.planner.errors import UnknownStrategyError
from arenite.planner.strategy import Strategy
from arenite.strategies.place.greedy_by_size import GreedyBySize

STRATEGIES: tuple[Strategy, ...] = (GreedyBySize(),)
"""Ours, in the order of the documentation; earlier ones win ties in `best`."""

ENTRY_POINT_GROUP = "arenite.strategies"


@cache
def known() -> dict[str, Strategy]:
    """Return ours and those that installed packages register, by name.

    Raises:
        ValueError: Two strategies have the same name, or a registered object is not a
            strategy.
    """
    by_name: dict[str, Strategy] = {}
    for strategy in STRATEGIES:
        _add(by_name, strategy, "arenite")
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _add(by_name, _load(entry_point), entry_point.value)
    return by_name


def find(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    by_name = known()
    if name not in by_name:
        raise UnknownStrategyError(name, tuple(by_name))
    return by_name[name]


def _load(entry_point: EntryPoint) -> Strategy:
    loaded = entry_point.load()
    strategy = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(strategy, Strategy):
        raise ValueError(f"entry point {entry_point.value!r} is not a strategy")
    return strategy


def _add(by_name: dict[str, Strategy], strategy: Strategy, origin: str) -> None:
    if strategy.name in by_name:
        raise ValueError(f"{origin}: a strategy named {strategy.name!r} exists already")
    by_name[strategy.name] = strategy
