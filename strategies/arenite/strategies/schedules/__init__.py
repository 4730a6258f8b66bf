"""Schedules: which step runs when and how often, and which tensors are spilled meanwhile."""
