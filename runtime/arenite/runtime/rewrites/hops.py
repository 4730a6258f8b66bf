"""Run a model over time on a stream: on the rows of a hop, not on the whole window.

A model reads a window: some rows, such as frames of sound. When the window has moved on by a hop
most rows of most tensors are those of the run before. A streamed program reads the rows of a hop
and makes the new rows of each tensor; of its operand a step keeps those older rows in a state
that it reads again::

    window    |.........|            a convolution of 3 rows, hop 2
                |.........|
    operand           ..NN           2 rows are kept, 2 are new
    result              NN

A step that cannot run on new rows, such as a mean over the window, reads the rows of the whole
window, which are kept before it; so do all steps behind it. Padding belongs to the window or,
where that is asked for, to the stream: see `Padding`.

Rows that depend on the padding of the window are other ones for each window. They are made again
at each run, beside the new ones; those between are kept::

    result    FF.......NNBB       2 rows at the front and 2 at the back are made again

Source: the idea of a fact for each tensor and one operator that delays is that of the folder
`pulse` of github.com/sonos/tract.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from arenite.planner import Tensor
from arenite.planner.errors import ModelError
from arenite.planner.operators import Along, Operator


class NotStreamedError(ModelError):
    """A model cannot run on a stream.

    Attributes:
        culprit: Name of the input or step.
    """

    def __init__(self, culprit: str, reason: str) -> None:
        super().__init__(f"{culprit!r} {reason}")
        self.culprit = culprit


class Padding(StrEnum):
    """What the padding along a stream belongs to."""

    WINDOW = "window"
    """Each window, as in the model: from the first whole window on outputs are those of the model.
    Rows that depend on padding are made again at each run."""
    STREAM = "stream"
    """The stream: rows that the model pads are those before and behind, so that results are late
    by the rows behind; and recurrent layers go on from the state of the last run."""


@dataclass(frozen=True, slots=True)
class Hops:
    """The stream that a model is to run on.

    Attributes:
        input: Name of the input that is a stream.
        axis: Its axis, as callers count.
        rows: Rows that are new at each run.
        parts: Parts in which a run computes them, one after another, each of as many rows.
    """

    input: str
    axis: int
    rows: int
    padding: Padding = Padding.WINDOW
    parts: int = 1


@dataclass(frozen=True, slots=True)
class WindowStep:
    """A step that computes the whole window although an operand is a stream.

    Attributes:
        name: Name of the step.
        reason: Why it does not run on new rows.
    """

    name: str
    reason: str


@dataclass(slots=True)
class Flow:
    """The rows of a tensor on the stream. Rows count from the start of the window.

    Attributes:
        rows: Rows of the window.
        hop: Rows by which the window moves on at each run.
        made: New rows that each run makes: the last before `end`. None if it makes all rows that
            are needed, from `low` on.
        end: The row behind the newest one that depends on no padding of the window.
        reach: Runs, this one included, whose input the rows made depend on.
        kept: Older rows that a state keeps.
        low: The first row that any result needs, where rows are made again.
        front: The first row that depends on no padding in front; those from `low` on are made
            again.
        back: Rows from `end` on that are made again.
        differs: Whether rows are others in each run, as they are made with another input or with
            a result of the whole window. No older ones can be kept.
    """

    rows: int
    hop: int
    made: int
    end: int
    reach: Fraction
    kept: int = 0
    low: int = 0
    front: int = 0
    back: int = 0
    differs: bool = False

    @property
    def first_made(self) -> int:
        """The oldest new row that this run makes."""
        return self.end - self.made

    @property
    def first(self) -> int:
        """The oldest row that is there."""
        return self.low if self.front or not self.made else self.first_made - self.kept

    @property
    def stop(self) -> int:
        """The row behind the last one that is there."""
        return self.end + self.back

    @property
    def newest(self) -> tuple[int, int]:
        """The rows that an output has, from the first to before the second."""
        return self.stop - min(self.hop, self.rows), self.stop

    def older(self, start: int) -> int:
        """Return how many rows from this one on earlier runs have made."""
        if not self.made:
            return 0
        return max(0, self.first_made - (max(start, self.front) if self.front else start))

    def keep(self, start: int) -> None:
        """Keep the older rows from this one on; all of them if rows before them are made again."""
        self.kept = max(self.kept, self.older(self.front or start))


@dataclass(frozen=True, slots=True)
class HopPiece:
    """Rows of a result that a step makes.

    Attributes:
        rows: The rows, from the first to before the second.
        taken: For each input the rows that it reads, as `rows`; None for one without rows.
        operator: The operator that makes them.
    """

    rows: tuple[int, int]
    taken: tuple[tuple[int, int] | None, ...]
    operator: Operator


@dataclass(frozen=True, slots=True)
class HopStep:
    """A step that makes rows, the new ones first.

    Attributes:
        along: How it runs along the stream.
        flow: The rows of its result.
        pieces: The rows that it makes.
    """

    along: Along
    flow: Flow
    pieces: tuple[HopPiece, ...]


def is_cut(tensor: Tensor, axis: int) -> bool:
    """Tell whether rows along an axis follow one another in memory, in whole bytes."""
    before, row = tensor.shape[:axis], tensor.shape[axis + 1 :]
    size = math.prod(row) * tensor.dtype.bits
    return math.prod(before) == 1 and size > 0 and size % 8 == 0


def with_rows(tensor: Tensor, axis: int, rows: int) -> Tensor:
    """Return a tensor with so many rows."""
    return replace(tensor, shape=(*tensor.shape[:axis], rows, *tensor.shape[axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which steps of a program run on new rows, and which rows there are of each tensor.

    Attributes:
        axes: The axis of the rows of each tensor that has some.
        flows: The rows of each tensor that is a stream, views left out.
        steps: The steps that run on new rows, by name.
        whole: The first steps that compute the whole window.
        reach: Runs whose input some result depends on, this one included.
        late: Rows of the input by which the latest output is late.
        alters: Whether some output depends on rows that the model pads.
    """

    axes: Mapping[str, int]
    flows: Mapping[str, Flow]
    steps: Mapping[str, HopStep]
    whole: tuple[WindowStep, ...]
    reach: int
    late: Fraction
    alters: bool
