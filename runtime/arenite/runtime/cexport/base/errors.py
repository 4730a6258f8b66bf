"""Why a model cannot be exported as C."""

from collections.abc import Sequence

from arenite.planner.errors import ModelError


class NotWrittenError(Exception):
    """No C kernel runs an operator in the form it has here."""


class FailedExportError(ModelError):
    """The exported source computes other outputs than its reference."""


class NotExportedError(ModelError):
    """There are no C kernels for some steps of a model.

    Attributes:
        steps: Name, operator and reason of each.
    """

    def __init__(self, steps: Sequence[tuple[str, str, str]]) -> None:
        lines = "; ".join(f"{name!r} ({kind}): {why}" for name, kind, why in steps[:8])
        more = f" and {len(steps) - 8} more" if len(steps) > 8 else ""
        super().__init__(f"no C kernel runs {lines}{more}; nothing was written")
        self.steps = tuple(steps)
