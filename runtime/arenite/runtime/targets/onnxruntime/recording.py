"""From the allocations of one run to the records to place, and the memory of a stock session.

A step is the time of an allocation; nothing else moves the clock. A block that is
freed between two allocations ends at the second.
"""

import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Problem, UsageRecord
from arenite.planner.errors import BindingError, UnboundDimensionError, UnsupportedModelError
from arenite.planner.units import align_up
from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.library import ELEMENT_TYPES, HostedSession, fits, library
from arenite.runtime.targets.onnxruntime.settled import HostedOrders
from arenite.runtime.targets.onnxruntime.stock import (
    RunFailedError,
    missing_files_named,
    refusals,
    stock_session,
)


class StatedInput(Protocol):
    """An input as a session states it: ours or the stock one.

    Attributes:
        name: Name of the input.
        type: Its type, such as `tensor(float)`.
        shape: Outermost first; a name, or None, for a free dimension.
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def shape(self) -> Sequence[int | str | None]: ...


def drawn_feeds(
    path: Path,
    inputs: Sequence[StatedInput],
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    values: Mapping[str, float] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Return random floating-point inputs; others, which may be indices, are zeros.

    Args:
        path: The model, for messages.
        inputs: Inputs of the model.
        dims: Values of free dimensions by name; one without a name is named by its input and
            axis, such as `input:0`.
        shapes: Whole shapes of inputs by name.
        values: Value of all elements of an input, by name, instead of random numbers.

    Raises:
        UnboundDimensionError: A free dimension has no value.
        BindingError: `dims`, `shapes` or `values` does not fit the model.
        UnsupportedModelError: An input is not a tensor of numbers.
    """
    bound = _bound_shapes(path, inputs, dims, shapes)
    for name in values or {}:
        if name not in bound:
            raise BindingError(name, "is not an input of the model", path=path)
    random = np.random.default_rng(0)
    dtypes = {f"tensor({label})": np.dtype(kind) for kind, label in ELEMENT_TYPES.values()}
    feeds: dict[str, NDArray[np.generic]] = {}
    for value in inputs:
        dtype = dtypes.get(value.type)
        if dtype is None:
            raise UnsupportedModelError(value.name, f"{value.type} cannot be fed", path=path)
        shape = bound[value.name]
        if math.prod(shape) * np.dtype(np.float64).itemsize > sys.maxsize:
            raise UnsupportedModelError(value.name, f"{list(shape)} has too many elements to run",
                                        path=path)  # fmt: skip
        if values is not None and value.name in values:
            feeds[value.name] = _filled(path, value, shape, dtype, values[value.name])
        elif np.issubdtype(dtype, np.floating):
            feeds[value.name] = random.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = np.zeros(shape, dtype)
    return feeds


def _filled(
    path: Path,
    value: StatedInput,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    wanted: float,
) -> NDArray[np.generic]:
    """Return an input with one value in all elements."""
    try:
        with np.errstate(all="ignore"):
            array = np.full(shape, wanted, dtype)
        fits = np.issubdtype(dtype, np.floating) or bool(np.all(array == wanted))
    except (OverflowError, ValueError):
        fits = False
    if not fits:
        raise BindingError(value.name, f"is {value.type}, which cannot hold {wanted}", path=path)
    return array


def _bound_shapes(
    path: Path,
    inputs: Sequence[StatedInput],
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
    unused = set(dims)
    known = {value.name for value in inputs}
    free: set[str] = set()
    bound: dict[str, tuple[int, ...]] = {}
    for name in shapes:
        if name not in known:
            raise BindingError(name, "is not an input of the model", path=path)
    for value in inputs:
        given = shapes.get(value.name)
        if given is not None and not fits(given, value.shape):
            raise BindingError(
                value.name, f"cannot be {given}; the model states {value.shape}", path=path
            )
        sizes: list[int] = []
        for axis, size in enumerate(value.shape):
            if isinstance(size, int):
                sizes.append(size)
                continue
            # Some write "?" for a dimension that has no name.
            dimension = f"{value.name}:{axis}" if size in (None, "", "?") else str(size)
            unused.discard(dimension)
            if given is not None:
                sizes.append(given[axis])
            elif dimension in dims:
                sizes.append(dims[dimension])
            else:
                free.add(dimension)
        bound[value.name] = tuple(sizes)
    for name in sorted(unused):
        raise BindingError(name, "is not a free dimension of the model's inputs", path=path)
    if free:
        raise UnboundDimensionError(
            sorted(free), "give them by --dim NAME=N or --shape INPUT=1x3x224x224", path=path
        )
    return bound


ALIGNMENT: Final = 64
"""Alignment that the kernels of ONNX Runtime expect, in bytes."""

_NO_DIMS: Final[Mapping[str, int]] = MappingProxyType({})
_NO_SHAPES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Recording:
    """One run and its allocations.

    Attributes:
        outputs: Outputs of the model.
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
    """Return the allocations of ONNX Runtime in one run of a model, kernel scratch included.

    Of the orders that its nodes may run in it is the one that needs least; the same in every
    process.

    Args:
        path: The model.
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        values: Value of all elements of an input in that run, by name.

    Raises:
        ModelError: ONNX Runtime refuses the model, its inputs are not bound, or a file of weights
            beside it is not as stated.
        RunFailedError: The run fails on random inputs.
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
    """Run the model once and return its allocations.

    Args:
        hosted: The session.
        inputs: Checked, in its order.
        outputs_inside: Let the session ask for the outputs too.

    Raises:
        RunFailedError: ONNX Runtime fails.
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


_SUFFIX: Final = "_kernel_time"


@dataclass(frozen=True, slots=True)
class StockMemory:
    """Bytes of the CPU arena of a stock session, without weights.

    Attributes:
        tensors: Most bytes allocated and not freed, at the end of a kernel.
        in_use: Taken by these and by kernel scratch, as the arena rounds them, at most.
        held: Taken from the system at the end.
        order: Names of the nodes as they ran.
        outputs: Outputs of the last run.
    """

    tensors: int
    in_use: int
    held: int
    order: tuple[str, ...]
    outputs: Sequence[NDArray[Any]]


def stock_memory(
    model: Path | bytes, options: Any, feeds: Mapping[str, NDArray[Any]], *, num_runs: int = 1
) -> StockMemory:
    """Return the memory of a stock session that runs a model.

    Args:
        model: The model.
        options: Session options; profiling is switched on in them.
        feeds: The inputs.
        num_runs: Number of runs; from the second on, ONNX Runtime may take one block
            for all the tensors that it knows.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model, or a run fails.
        UnexpectedRuntimeError: This version does not note its memory.
        MissingDependencyError: The package onnxruntime is absent.
    """
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = stock_session(model, options)
        with refusals(model):
            for _ in range(num_runs):
                outputs: Sequence[NDArray[Any]] = []  # those of the run before are given back
                outputs = session.run(None, feeds)
        events = _events(Path(session.end_profiling()))
    kernels = [event for event in events if event["name"].endswith(_SUFFIX)]
    names = tuple(event["name"].removesuffix(_SUFFIX) for event in kernels)
    notes = [event["args"] for event in kernels]
    if not notes:
        return StockMemory(0, 0, 0, (), outputs)
    try:
        tensors = _above_start(notes, "mem_bytes_requested_in_use", "mem_requested_in_use_delta")
        weights = int(notes[0]["mem_bytes_in_use"]) - int(notes[0]["mem_in_use_delta"])
        in_use = max(int(note["mem_in_use_peak"]) for note in notes) - weights
        held = int(notes[-1]["mem_arena_held"]) - weights
    except KeyError as error:
        raise UnexpectedRuntimeError(
            f"this version of onnxruntime does not record its memory (no {error}); update it"
        ) from error
    return StockMemory(
        tensors, in_use, held, names[len(names) - len(names) // num_runs :], outputs
    )


def _above_start(notes: Sequence[Mapping[str, Any]], key: str, delta_key: str) -> int:
    """Return the largest value of a counter above its value before the first kernel."""
    start = int(notes[0][key]) - int(notes[0][delta_key])
    return max(int(note[key]) for note in notes) - start


def _events(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_bytes())
    return events
