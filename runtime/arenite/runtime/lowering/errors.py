"""Why a model cannot be lowered."""

from collections.abc import Sequence

from arenite.planner.errors import ModelError


class NotLoweredError(Exception):
    """The operator has a form that the native core does not run."""


class UnsupportedOperatorsError(ModelError):
    """No kernel runs some operators.

    Attributes:
        operators: Name, type and reason of each.
    """

    def __init__(self, operators: Sequence[tuple[str, str, str]], hint: str) -> None:
        lines = "; ".join(f"{name!r} ({kind}): {why}" for name, kind, why in operators[:8])
        more = f" and {len(operators) - 8} more" if len(operators) > 8 else ""
        super().__init__(f"no kernel runs {lines}{more}; {hint}")
        self.operators = tuple(operators)
