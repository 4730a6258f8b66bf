"""Policies, which trade time for memory: one a file, and a table of them."""

from arenite.strategies.fit.table import POLICIES, ROUNDING, find_policy, known_policies

__all__ = ["POLICIES", "ROUNDING", "find_policy", "known_policies"]
