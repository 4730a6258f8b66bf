"""Errors of differentiation, beyond a model that cannot be read."""

from collections.abc import Sequence
from pathlib import Path

from arenite.planner.errors import ModelError


class TrainingError(ModelError):
    """No training step can be made of the model."""


class NotDifferentiableError(TrainingError):
    """A gradient is needed through an operator that has no rule for it.

    Attributes:
        step: Name of the step.
        operator: Name of its operator in the model's format.
    """

    def __init__(
        self, step: str, operator: str, reason: str, *, path: Path | str | None = None
    ) -> None:
        super().__init__(
            f"operator {step!r} ({operator}) has no gradient here: {reason}; train only what "
            "comes after it, with --train-only",
            path=path,
        )
        self.step = step
        self.operator = operator


class NothingToTrainError(TrainingError):
    """No weights of the model can be trained, or none of those that were asked for.

    Attributes:
        known: Names of the parameters that could be.
    """

    def __init__(
        self, reason: str, known: Sequence[str], *, path: Path | str | None = None
    ) -> None:
        names = ", ".join(map(repr, known[:8])) + (" ..." if len(known) > 8 else "")
        super().__init__(f"{reason}; the model's parameters: {names or 'none'}", path=path)
        self.known = tuple(known)


class UnfitLossError(TrainingError):
    """The loss does not go with what the model makes."""


class BatchError(TrainingError):
    """The model cannot take a batch of the size that was asked for."""


class MaskError(TrainingError):
    """A mask or a codebook fits no trained parameter."""
