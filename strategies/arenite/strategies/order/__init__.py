"""Operator orders: which operator runs when, for the lowest peak load."""
