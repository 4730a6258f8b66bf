"""Errors of differentiation, beyond a model that cannot be read."""

from collections.abc import Sequence
from pathlib import Path

from arenite.planner.errors import ModelError


class TrainingError(ModelError):
    """The model has no training step."""


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
            f"operator {step!r} ({operator}) cannot be differentiated: {reason}; train only "
            "parameters behind it, with --train-only",
            path=path,
        )
        self.step = step
        self.operator = operator


class NothingToTrainError(TrainingError):
    """No weights of the model can be trained, or none of the requested ones.

    Attributes:
        known: Names of the trainable parameters.
    """

    def __init__(
        self, reason: str, known: Sequence[str], *, path: Path | str | None = None
    ) -> None:
        names = ", ".join(map(repr, known[:8])) + (" ..." if len(known) > 8 else "")
        super().__init__(f"{reason}; the model's parameters: {names or 'none'}", path=path)
        self.known = tuple(known)


class UnfitLossError(TrainingError):
    """The loss is not defined for the output of the model."""


class BatchError(TrainingError):
    """The model cannot take a batch of the requested size."""


class MaskError(TrainingError):
    """A mask or a codebook fits no trained parameter."""
