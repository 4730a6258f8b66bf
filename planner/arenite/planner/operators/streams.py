"""How an operator runs along one axis of its operands, a few rows at a time.

Rows are the indices of that axis, such as the frames of a sound. A window over the operand slides
along them: each row of the result is made of the rows under one position, as in a convolution, or
of one row, as in a sum.
"""

from dataclasses import dataclass

from arenite.planner.operators.windows import Spread, Window


@dataclass(frozen=True, slots=True)
class Along:
    """How a result is made along an axis.

    Attributes:
        axis: The axis of the result.
        axes: That of each input; None for one without rows, such as a weight.
        windows: For each input the window over its rows; None for one without rows.
        carried: Inputs that it starts from before the first row, each with the output that has it
            behind the last row.
    """

    axis: int
    axes: tuple[int | None, ...]
    windows: tuple[Window | Spread | None, ...]
    carried: tuple[tuple[int, int], ...] = ()


def row_by_row(length: int) -> Window:
    """Return the window of one row over so many rows."""
    return Window(length, length, 1, 1, 1, 0)
