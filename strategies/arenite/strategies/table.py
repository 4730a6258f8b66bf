"""All strategies: being in a table is enough to be tested, compared and offered."""

from functools import cache

from arenite.planner.errors import UnknownStrategyError
from arenite.planner.strategy import Strategy
from arenite.strategies.best import Best
from arenite.strategies.place.table import PLACE
from arenite.strategies.registered import registered
from arenite.strategies.share.table import SHARE

STRATEGIES: tuple[Strategy, ...] = (*PLACE, *SHARE, Best())
"""Ours, in the order of the documentation."""


@cache
def known() -> dict[str, Strategy]:
    """Return ours and those that installed packages register, by name.

    Raises:
        ValueError: Two strategies have the same name, or a registered object is not a
            strategy.
    """
    by_name: dict[str, Strategy] = {}
    for origin, strategy in (*(("arenite", ours) for ours in STRATEGIES), *registered()):
        if strategy.name in by_name:
            raise ValueError(f"{origin}: a strategy named {strategy.name!r} exists already")
        by_name[strategy.name] = strategy
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
