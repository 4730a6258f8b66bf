"""Inputs to run a model on where the user gave none."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import BindingError, UnboundDimensionError, UnsupportedModelError
from arenite.runtime.targets.onnxruntime.values import ELEMENT_TYPES, fits


class Value(Protocol):
    """An input as a session states it: ours or the stock one.

    Attributes:
        name: Name of the input.
        type: Its type, such as `tensor(float)`.
        shape: Outermost first; a name, or None, for a free dimension.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def type(self) -> str: ...  # noqa: D102
    @property
    def shape(self) -> Sequence[int | str | None]: ...  # noqa: D102


def drawn_feeds(
    path: Path,
    inputs: Sequence[Value],
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int = 0,
    *,
    values: Mapping[str, float] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Return random floating-point inputs; others, which may be indices, are zeros.

    Args:
        path: The model, for messages.
        inputs: What it takes.
        dims: Values of free dimensions by name; one without a name goes by its input and
            axis, such as `input:0`.
        shapes: Whole shapes of inputs by name.
        seed: Seed of the random numbers.
        values: What inputs hold instead, by name, in all elements.

    Raises:
        UnboundDimensionError: A free dimension has no value.
        BindingError: `dims`, `shapes` or `values` does not fit the model.
        UnsupportedModelError: An input is not a tensor of numbers.
    """
    bound = _bound_shapes(path, inputs, dims, shapes)
    for name in values or {}:
        if name not in bound:
            raise BindingError(name, "is not an input of the model", path=path)
    random = np.random.default_rng(seed)
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
    path: Path, value: Value, shape: tuple[int, ...], dtype: np.dtype[np.generic], wanted: float
) -> NDArray[np.generic]:
    """Return an input with one value in all elements."""
    try:
        with np.errstate(all="ignore"):
            array = np.full(shape, wanted, dtype)
        fits = np.issubdtype(dtype, np.floating) or bool(np.all(array == wanted))
    except (OverflowError, ValueError):
        fits = False
    if not fits:
        raise BindingError(value.name, f"is {value.type}, which cannot be {wanted}", path=path)
    return array


def _bound_shapes(
    path: Path,
    inputs: Sequence[Value],
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
                value.name,
                f"cannot be {given}; the model states {value.shape}",
                path=path,
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
            sorted(free),
            "give them by --dim NAME=N or --shape INPUT=1x3x224x224",
            path=path,
        )
    return bound
