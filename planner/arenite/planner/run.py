"""What a run touches: which rows of which tensors its turns read and write, and where these lie.

It is stated apart from the program, so that a reader needs neither operators nor aliases to draw a
run, and what checks one (`arenite.planner.verify_run`) none of the code that made it.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Rows(NamedTuple):
    """Some rows of a tensor.

    Attributes:
        tensor: Its name.
        first: The first row.
        stop: The row after the last.
    """

    tensor: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Where the rows of a tensor lie.

    Attributes:
        name: Name of the tensor.
        memory: Name of the memory that it lies in.
        row_bytes: Bytes of a row.
        offsets: The first byte of each row in that memory; one for a tensor that is never cut.
    """

    name: str
    memory: str
    row_bytes: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TouchingTurn:
    """A turn: a step whole, or some of its rows.

    Attributes:
        step: Name of the step.
        first: The first of the rows; of those that it sums up, if it does.
        rows: How many; 0 for the whole step.
        reads: What it reads.
        writes: What it writes.
    """

    step: str
    first: int
    rows: int
    reads: tuple[Rows, ...]
    writes: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a program.

    Attributes:
        tensors: The tensors that turns touch, constants aside.
        turns: The turns, in order.
        inputs: Names of the tensors that are there before the first turn.
        outputs: Names of those that must be there after the last.
    """

    tensors: tuple[PlacedRows, ...]
    turns: tuple[TouchingTurn, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
