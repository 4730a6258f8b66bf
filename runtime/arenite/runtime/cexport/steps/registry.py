"""Which function writes the steps of an operator."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from arenite.planner.operators.operator import Operator
from arenite.runtime.cexport.steps.writer import StepWriter

Write: TypeAlias = Callable[[StepWriter], None]

_WRITERS: dict[type[Operator], Write] = {}


def writes(*operators: type[Operator]) -> Callable[[Write], Write]:
    """List a function as what writes the steps of some operators."""

    def listed(write: Write) -> Write:
        for operator in operators:
            assert operator not in _WRITERS, f"{operator.__name__} is listed twice"
            _WRITERS[operator] = write
        return write

    return listed


def writers() -> Mapping[type[Operator], Write]:
    """Return the functions by operator."""
    return _WRITERS
