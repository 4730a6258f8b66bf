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
    A step whose rows depend on padding computes the whole window."""
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
    """

    input: str
    axis: int
    rows: int
    padding: Padding = Padding.WINDOW


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
        made: Rows that each run makes: the last before `end`.
        end: The row behind the newest one.
        reach: Runs, this one included, whose input the rows made depend on.
        kept: Older rows that a state keeps.
    """

    rows: int
    hop: int
    made: int
    end: int
    reach: Fraction
    kept: int = 0

    @property
    def first_made(self) -> int:
        """The oldest row that this run makes."""
        return self.end - self.made

    @property
    def first(self) -> int:
        """The oldest row that is there."""
        return self.first_made - self.kept


@dataclass(frozen=True, slots=True)
class HopStep:
    """A step that makes new rows.

    Attributes:
        along: How it runs along the stream.
        flow: The rows of its result.
        taken: For each input the rows that it reads, from the first to before the second; None
            for one without rows.
        operator: The operator that makes them.
    """

    along: Along
    flow: Flow
    taken: tuple[tuple[int, int] | None, ...]
    operator: Operator


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
