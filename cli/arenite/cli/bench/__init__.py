"""Engines side by side: each in a process of its own, turn by turn."""
