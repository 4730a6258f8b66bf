"""From the allocations of one run to the records to place.

A step is the time of an allocation; nothing else moves the clock. What is given back
between two allocations ends at the second.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from numpy.typing import NDArray

from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.units import align_up
from arenite.runtime.targets.onnxruntime.errors import RunFailedError
from arenite.runtime.targets.onnxruntime.feeds import drawn_feeds
from arenite.runtime.targets.onnxruntime.hosted import HostedSession
from arenite.runtime.targets.onnxruntime.library import library
from arenite.runtime.targets.onnxruntime.orders import HostedOrders
from arenite.runtime.targets.onnxruntime.stock import missing_files_named

ALIGNMENT: Final = 64
"""What ONNX Runtime's kernels expect of CPU memory."""

_NO_DIMS: Final[Mapping[str, int]] = MappingProxyType({})
_NO_SHAPES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Recording:
    """One run, and what it asked for.

    Attributes:
        problem: The records.
        outputs: What the model gave.
        bound: Whether outputs of stated shape were written where the caller wants them;
            a run that is to ask for the same must do the same.
    """

    problem: Problem
    outputs: list[NDArray[Any]]
    bound: bool


def onnxruntime_problem(
    path: Path,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    values: Mapping[str, float] | None = None,
) -> Problem:
    """Return what ONNX Runtime asks for in one run of a model, kernel scratch included.

    Of the orders that its nodes may run in it is the one that needs least; the same in every
    process.

    Args:
        path: The model.
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        values: What inputs hold in that run, by name, in all elements.

    Raises:
        ModelError: ONNX Runtime refuses the model, its inputs are not bound, or a file of weights
            beside it is not as stated.
        RunFailedError: It gives up on random inputs.
        UnexpectedRuntimeError: The library is not one we know.
        MissingDependencyError: The package onnxruntime is absent.
    """
    with missing_files_named(path):
        orders = HostedOrders(library(), path, optimise=True, num_threads=1)
    with contextlib.closing(orders):
        hosted = orders.session(0)
        feeds = drawn_feeds(path, hosted.inputs, dims, shapes, values=values)
        inputs = [feeds[value.name] for value in hosted.inputs]
        problems = [record(hosted, inputs).problem]
        for index in range(1, len(orders)):
            hosted = orders.session(index)
            problems.append(record(hosted, inputs).problem)
    return min(problems, key=lambda problem: problem.lower_bound)


def record(
    hosted: HostedSession, inputs: Sequence[NDArray[Any]], *, outputs_inside: bool = False
) -> Recording:
    """Run the model once and return what it asked for.

    Args:
        hosted: The session.
        inputs: Checked, in its order.
        outputs_inside: Let the session ask for the outputs too.

    Raises:
        RunFailedError: ONNX Runtime gave up.
    """
    if outputs_inside:
        return _recorded(hosted, inputs, bound=False)
    try:
        return _recorded(hosted, inputs, bound=True)
    except RunFailedError:
        # The shape that an output really has may not be the one that the model states.
        return _recorded(hosted, inputs, bound=False)


def recorded_problem(blocks: Sequence[tuple[int, int, int]]) -> Problem:
    """Return the records of blocks given as size, start and end.

    Source: Sekiyama et al., arXiv 1804.10001: plan from the profile of one run.
    """
    return Problem(
        tuple(
            UsageRecord(f"allocation_{start}", align_up(size, ALIGNMENT), start, end, ALIGNMENT)
            for size, start, end in blocks
        )
    )


def _recorded(hosted: HostedSession, inputs: Sequence[NDArray[Any]], *, bound: bool) -> Recording:
    hosted.allocator.start_recording()
    try:
        outputs = hosted.run(inputs, bound=bound)
    finally:
        blocks = hosted.allocator.stop_recording()
    return Recording(recorded_problem(blocks), outputs, bound)
