"""Strategies that place usage records, and policies that trade time for memory.

`place/` decides an offset for each record, `share/` a whole buffer for each.
"""

from arenite.strategies.table import (
    POLICIES,
    STRATEGIES,
    find,
    find_policy,
    known,
    known_policies,
)

__all__ = ["POLICIES", "STRATEGIES", "find", "find_policy", "known", "known_policies"]
