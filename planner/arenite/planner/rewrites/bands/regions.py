"""What runs in bands: a region, the turns in which its rows are made, and what surrounds it.

The rows of the region's results are asked for one band after the other. Each step makes the rows
that the next one needs, and no row is made twice; a row is dead after its last reader.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Region(NamedTuple):
    """Consecutive steps that run in bands.

    Attributes:
        start: Index of the first step.
        stop: Index after the last step.
        rows: Rows that are asked of its results at a time.
        inner_rows: Rows that every other step makes at a time, if as many are needed.
    """

    start: int
    stop: int
    rows: int = 1
    inner_rows: int = 1


class Turn(NamedTuple):
    """Rows of a step's result that are made together.

    Attributes:
        step: Index of the step.
        first: The first of the rows; of the operand's, if the step sums these up.
        rows: Their number.
    """

    step: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """What of a region's tensors its surroundings need.

    Attributes:
        consumed: Tensors from before the region that nothing needs after it; their rows die one
            after the other.
        kept: Tensors made in the region that something after it reads.
        carried: Bytes that are live throughout and that the region does not change.
    """

    consumed: frozenset[str]
    kept: frozenset[str]
    carried: int
