"""Errors of compression, beyond a model that cannot be read."""

from pathlib import Path

from arenite.planner import AreniteError
from arenite.planner.errors import ModelError


class CodedError(AreniteError):
    """Bytes that do not decode: damaged, truncated, or of a later version.

    Attributes:
        reason: The fault.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"coded weights cannot be read: {reason}; compress the model again")
        self.reason = reason


class NoLayerError(ModelError):
    """A model has no weights that could be compressed."""


class NonFiniteWeightsError(ModelError):
    """Weights of a layer are NaN or infinite, so they have no mean and no order.

    Attributes:
        layer: Its name.
        count: How many of its weights.
    """

    def __init__(
        self, layer: str, count: int, total: int, *, path: Path | str | None = None
    ) -> None:
        super().__init__(
            f"layer {layer!r}: {count:,} of its {total:,} weights "
            f"{'is' if count == 1 else 'are'} NaN or infinite; the file is damaged or training "
            "diverged: export the model again",
            path=path,
        )
        self.layer = layer
        self.count = count


class EvaluationError(ModelError):
    """A model cannot be run, so the cost of compression is unknown."""
