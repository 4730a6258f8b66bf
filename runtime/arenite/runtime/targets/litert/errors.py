"""What can go wrong between a stock interpreter and a plan for it."""

from arenite.planner.errors import AreniteError


class UnexpectedRuntimeError(AreniteError):
    """The stock interpreter is not what a plan needs, so its own placement stays."""


class FixedShapeError(AreniteError):
    """A plan holds for the shapes it was made for; the interpreter refuses others."""


class StockPlacementWarning(UserWarning):
    """The interpreter places its tensors itself; the text says why."""
