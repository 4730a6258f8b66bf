"""Which record lies in which of several memories."""

from arenite.strategies.memories.spread import Spread, spread

__all__ = ["Spread", "spread"]
