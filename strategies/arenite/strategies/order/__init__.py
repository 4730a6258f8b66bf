"""Operator orders: which operator runs when, for the lowest peak load."""

from arenite.strategies.order.table import ORDERS, find_order

__all__ = ["ORDERS", "find_order"]
