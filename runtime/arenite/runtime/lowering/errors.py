"""Errors of lowering."""

from collections.abc import Sequence

from arenite.planner import DType
from arenite.planner.errors import ModelError


class NotLoweredError(Exception):
    """No kernel of the core runs this form of an operator."""


def unsupported(name: str, value: object, *supported: object) -> NotLoweredError:
    """Return the error for an attribute or input that has an unsupported value.

    Args:
        name: Name of the attribute or input, as its format writes it.
        supported: Supported values, or words for them.
    """
    choices = f", supported: {', '.join(map(str, supported))}" if supported else ""
    return NotLoweredError(f"{name}={value} is unsupported{choices}")


def require_type(dtype: DType, *supported: DType) -> None:
    """Check an element type.

    Raises:
        NotLoweredError: It is not one of the supported types.
    """
    if dtype not in supported:
        choices = ", ".join(each.label for each in supported)
        raise NotLoweredError(f"element type {dtype.label} is unsupported, supported: {choices}")


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
