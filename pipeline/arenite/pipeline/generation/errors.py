"""Failures of generation."""

from arenite.planner import AreniteError


class NoDecoderError(AreniteError):
    """A model is no decoder that the loop can run.

    Attributes:
        model: Its name.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}")
        self.model = model


class PromptError(AreniteError):
    """A prompt has no tokens, too many, or some that the model does not have."""
