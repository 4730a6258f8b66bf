"""Strategies that decide an offset for each record."""
