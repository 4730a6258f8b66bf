"""Operators that keep a tensor of 32-bit floats in half the bytes, and give it back rounded."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.elementwise import ElementWise


@dataclass(frozen=True, slots=True)
class Narrow(ElementWise):
    """Rounds 32-bit floats to 16-bit ones."""

    repeatable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Widen(ElementWise):
    """Makes 32-bit floats of 16-bit ones."""

    repeatable: ClassVar[bool] = True
