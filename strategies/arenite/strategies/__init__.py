"""Strategies that place usage records: one a file, all in one table.

`place/` decides an offset for each record, `share/` a whole buffer for each.
"""

from arenite.strategies.table import STRATEGIES, find, known

__all__ = ["STRATEGIES", "find", "known"]
