"""All operators of our runtime, found by their base class."""

from collections.abc import Iterator
from functools import cache

from arenite.runtime.operators import (  # noqa: F401  # so that every class is defined
    convolution,
    detection,
    elementwise,
    external,
    filters,
    linear,
    movement,
    moving,
    normalisation,
    pooling,
    recurrent,
    reduction,
    spectrum,
)
from arenite.runtime.operators.base import RuntimeOperator


@cache
def operators() -> tuple[type[RuntimeOperator], ...]:
    """Return the operators, by their number in the program file."""
    found = sorted(set(_concrete(RuntimeOperator)), key=lambda each: each.number)
    numbers = [each.number for each in found]
    assert numbers == list(range(1, len(found) + 1)), f"numbers with gaps or twins: {numbers}"
    return tuple(found)


def _concrete(base: type[RuntimeOperator]) -> Iterator[type[RuntimeOperator]]:
    for each in base.__subclasses__():
        # Dataclasses with slots are made twice; the first has none.
        if {"number", "__slots__"} <= vars(each).keys():
            yield each
        yield from _concrete(each)
