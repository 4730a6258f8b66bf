"""What can go wrong between ONNX Runtime and a plan for it."""

from collections.abc import Sequence

from arenite.planner.errors import AreniteError


class UnexpectedRuntimeError(AreniteError):
    """The library is not what a plan needs, so the stock session runs the model."""


class RunFailedError(AreniteError):
    """ONNX Runtime gave up on a run; the text is its own."""


class InputMismatchError(AreniteError):
    """What is fed is not what the model takes.

    Attributes:
        name: The input.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"input {name!r}: {reason}")
        self.name = name


class UnknownOutputError(AreniteError):
    """The model has no output of that name.

    Attributes:
        name: The name asked for.
        known: The names there are.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown output {name!r}; known: {', '.join(map(repr, known))}")
        self.name = name
        self.known = tuple(known)


class StockSessionWarning(UserWarning):
    """ONNX Runtime takes its memory as it likes; the text says why."""
