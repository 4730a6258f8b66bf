"""All strategies: being in a table is enough to be tested, compared and offered."""

from functools import cache

from arenite.planner import Strategy
from arenite.strategies.best import Best
from arenite.strategies.place.table import PLACE
from arenite.strategies.registered import STRATEGY_REGISTER, other_strategies
from arenite.strategies.share.table import SHARE

STRATEGIES: tuple[Strategy, ...] = (*PLACE, *SHARE, Best())
"""Ours, in the order of the documentation."""


@cache
def known() -> dict[str, Strategy]:
    """Return ours and those that installed packages register, by name.

    Raises:
        PluginError: Two strategies have the same name.
    """
    return STRATEGY_REGISTER.by_name(STRATEGIES, other_strategies())


def find(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    return STRATEGY_REGISTER.find(name, known())
