"""From a model over time to a program that runs on a stream."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import Built, build_model
from arenite.pipeline.targets.compiling import lower_model
from arenite.planner import Program, Strategy
from arenite.planner.errors import PlanError
from arenite.runtime.rewrites import Hops, Kernels, NotStreamedError, Streamed, streamed


@dataclass(frozen=True, slots=True)
class StreamedModel:
    """A model that runs on a stream, beside the same model on whole windows.

    Attributes:
        built: The program of a hop and its plan.
        streamed: How it runs on the stream.
        window: The program of the whole window and its plan.
        multiply_adds: Of a hop.
        window_multiply_adds: Of the whole window.
    """

    built: Built
    streamed: Streamed
    window: Built
    multiply_adds: int
    window_multiply_adds: int

    @property
    def is_exact(self) -> bool:
        """Whether outputs are those of the whole window, once it has been read.

        They are the same to the bit if the same kernels compute both: integers always do.
        """
        return not self.streamed.alters


def stream_model(
    model: Path,
    reading: Reading,
    *,
    strategy: Strategy | None = None,
    capacity: int | None = None,
    kernels: Kernels = Kernels.QUICK,
) -> StreamedModel:
    """Return a model as it runs on the stream that a reading states.

    If the arena is larger than the capacity, a hop is computed in parts of fewer rows, one after
    another.

    Args:
        reading: Its `hops` state the stream.
        strategy: Places the records; `best` by default.
        capacity: Most bytes that the arena may take; None for no limit.

    Raises:
        NotStreamedError: It cannot run on that stream.
        ModelError: The model cannot be read or run.
        PlanError: There is no plan.
    """
    if reading.hops is None:
        raise OptionsError("a stream needs an axis of an input and a hop")
    whole = lower_model(model, replace(reading, hops=None)).program

    def built(hops: Hops) -> Built:
        own = replace(reading, hops=hops)
        return build_model(model, own, strategy=strategy, capacity=capacity, kernels=kernels)

    hops, made = _within(whole, reading.hops, built)
    found = streamed(whole, hops)
    return StreamedModel(
        made,
        found,
        build_model(model, replace(reading, hops=None), strategy=strategy, kernels=kernels),
        found.program.multiply_adds,
        whole.multiply_adds,
    )


def _within(program: Program, hops: Hops, build: Callable[[Hops], Built]) -> tuple[Hops, Built]:
    """Return a program within a capacity and its stream, in parts if the whole hop is too large.

    Raises:
        PlanError: There is no such program.
    """
    try:
        return hops, build(hops)
    except PlanError as error:
        last = error
    for each in ways_in_parts(program, hops):
        try:
            return each, build(each)
        except PlanError as error:
            last = error
    raise last


_MOST_PARTS = 16
"""Parts of a hop: each has the steps of the program."""


def ways_in_parts(program: Program, hops: Hops) -> list[Hops]:
    """Return streams whose hop is computed in parts, those of fewest multiply-adds first.

    Args:
        program: A lowered program of the whole window.
    """
    found: list[tuple[int, int]] = []
    for parts in range(2, min(hops.rows, _MOST_PARTS) + 1):
        with suppress(NotStreamedError):
            own = streamed(program, replace(hops, parts=parts))
            found.append((own.program.multiply_adds, parts))
    return [replace(hops, parts=parts) for _, parts in sorted(found)]


def hop_of(text: str, rate: float | None) -> int:
    """Return the rows of a hop: a number, or milliseconds at so many rows a second.

    Raises:
        ValueError: It is neither, or no whole number of rows.
    """
    number, is_time = text.removesuffix("ms"), text.endswith("ms")
    try:
        value = float(number) if is_time else int(number)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a hop; write rows such as 4, or 20ms") from error
    if not is_time:
        return int(value)
    if rate is None:
        raise ValueError(f"a hop of {text} needs the rate of the rows: --rate 50 for 50 a second")
    rows = value * rate / 1000
    if not 0 < rows < 2**31 or abs(rows - round(rows)) > 1e-6 * rows:
        raise ValueError(f"{text} at {rate:g} rows a second is {rows:g} rows, no whole number")
    return round(rows)


def axis_of(text: str) -> tuple[str, int]:
    """Return the input and the axis of a text such as `frames:1`; names may have colons.

    Raises:
        ValueError: It is not of that form.
    """
    name, colon, axis = text.rpartition(":")
    if not (name and colon and axis.isascii() and axis.isdigit() and len(axis) < 4):
        raise ValueError(
            f"{text!r} is not the axis of an input; write INPUT:AXIS such as frames:1"
        )
    return name, int(axis)
