"""Bind the open parts of a model: free dimensions, and inputs fixed at a value."""

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.planner.errors import (
    BindingError,
    ModelFormatError,
    UnboundDimensionError,
    UnsupportedModelError,
    about_file,
)
from arenite.planner.importers.onnx.external_data import UnreadableTensorError, embed
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.types import TensorType, numpy_dtype, read_dtype, why_unsizable
from arenite.planner.sizes import Dimension, Expression, Length, Size, at, highest_sizes
from arenite.planner.tensors import DType

_UNRANKED = "?"
_IMAGE_RANK, _SIDE = 4, 224


@dataclass(frozen=True, slots=True)
class Binding:
    """The inputs with every dimension known.

    Attributes:
        inputs: By name, in the model's order.
        dimensions: Values of the named dimensions.
        ranges: Those that lengths of inputs depend on, in order of first use.
    """

    inputs: Mapping[str, TensorType]
    dimensions: Mapping[str, int]
    ranges: tuple[Dimension, ...] = ()

    def without(self, names: Container[str]) -> "Binding":
        """Return the binding of the other inputs; dimensions keep their values."""
        others = {name: each for name, each in self.inputs.items() if name not in names}
        return Binding(others, self.dimensions, self.ranges)

    def apply(self, declared: onnx.TypeProto) -> onnx.TypeProto:
        """Return a declared type with the named dimensions it mentions filled in."""
        bound = onnx.TypeProto()
        bound.CopyFrom(declared)
        for dimension in bound.tensor_type.shape.dim:
            value = self.dimensions.get(dimension.dim_param)
            if value is not None:  # that at the highest sizes
                dimension.dim_value = value
        return bound


def bind(
    graph: onnx.GraphProto,
    dims: Mapping[str, Length],
    shapes: Mapping[str, tuple[Length, ...]],
    ties: Mapping[str, int] | None = None,
) -> Binding:
    """Return the inputs of `graph` with their free dimensions bound.

    A dimension without a name goes by its input and axis, such as `input:0`. A range that is
    given under that name has the model's own name, if it has one; under another name it keeps
    that, and lengths of one name are always equal.

    Args:
        dims: Lengths by name.
        shapes: Lengths of inputs by the name of the input.
        ties: Dimensions that are expressions of others, by name.

    Raises:
        BindingError: `dims` or `shapes` names what the model does not have, or gives a
            value the model or the other one rules out.
        UnboundDimensionError: A free dimension is left unbound.
        UnsupportedModelError: An input is not a tensor of a type with a fixed size.
    """
    inputs = _declarations(graph)
    binder = _Binder({name: shape for name, (_, shape) in inputs.items()}, ties)
    binder.take_shapes(shapes)
    binder.take_dims(dims)
    bound = binder.bound_shapes()
    types = {name: TensorType(dtype, bound[name]) for name, (dtype, _) in inputs.items()}
    return Binding(types, binder.values, binder.used_ranges(bound.values()))


def stated_name(dimension: onnx.TensorShapeProto.Dimension) -> str:
    """Return the name of a free dimension, "" if it has none: some write `?` for that."""
    name = str(dimension.dim_param)
    return "" if name == _UNRANKED else name


def open_names(graph: onnx.GraphProto) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the free dimensions and of the inputs.

    Raises:
        ModelFormatError: An input has no element type.
        UnsupportedModelError: An input is not a tensor of a type with a fixed size.
    """
    inputs = _declarations(graph)
    free = _Binder({name: shape for name, (_, shape) in inputs.items()}).free()
    return frozenset(free), frozenset(inputs)


def open_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int | str, ...]]:
    """Return the shape of each input, free dimensions by their names.

    Raises:
        ModelFormatError: An input has no element type.
        UnsupportedModelError: An input is not a tensor of a type with a fixed size.
    """
    return {name: shape for name, (_, shape) in _declarations(graph).items()}


def _declarations(graph: onnx.GraphProto) -> dict[str, tuple[DType, tuple[int | str, ...]]]:
    """Return the declaration of each input that no initialiser fixes."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(tensor.values.name for tensor in graph.sparse_initializer)
    return {
        value.name: _declaration(value) for value in graph.input if value.name not in constants
    }


def _declaration(value: onnx.ValueInfoProto) -> tuple[DType, tuple[int | str, ...]]:
    """Return an input's type and its dimensions, the free ones by name."""
    reason = why_unsizable(value.type)
    if reason is not None:
        raise UnsupportedModelError(value.name, reason)
    tensor = value.type.tensor_type
    dtype = read_dtype(tensor.elem_type)
    if dtype is None:
        raise ModelFormatError(f"input {value.name!r} has no element type")
    if not tensor.HasField("shape"):
        return dtype, (_UNRANKED,)
    shape: list[int | str] = []
    for axis, dimension in enumerate(tensor.shape.dim):
        if dimension.HasField("dim_value") and dimension.dim_value >= 0:
            shape.append(dimension.dim_value)
        else:
            shape.append(stated_name(dimension) or f"{value.name}:{axis}")
    return dtype, tuple(shape)


class _Binder:
    """Collects the values of the free dimensions and refuses contradictions."""

    def __init__(
        self, shapes: dict[str, tuple[int | str, ...]], ties: Mapping[str, int] | None = None
    ) -> None:
        self._shapes = shapes
        self._ties = ties or {}
        self._ranges: dict[str, Dimension] = {}
        self.values: dict[str, int] = {}

    def take_shapes(self, shapes: Mapping[str, tuple[Length, ...]]) -> None:
        for name, given in shapes.items():
            declared = self._shapes.get(name)
            if declared is None:
                raise BindingError(name, _unknown("an input", self._shapes))
            if declared == (_UNRANKED,):
                declared = tuple(f"{name}:{axis}" for axis in range(len(given)))
                self._shapes[name] = declared
            if len(declared) != len(given):
                raise BindingError(
                    name, f"has {len(declared)} dimensions ({_text(declared)}), not {len(given)}"
                )
            for axis, (wanted, value) in enumerate(zip(declared, given, strict=True)):
                if isinstance(wanted, str):
                    self._bind(wanted, value, f"{name}:{axis}")
                elif isinstance(value, (Dimension, Size)) or wanted != value:
                    raise BindingError(
                        name, f"has length {wanted} on axis {axis}, not {_stated(value)}"
                    )

    def take_dims(self, dims: Mapping[str, Length]) -> None:
        free = self.free()
        for name, value in dims.items():
            if name not in free:
                raise BindingError(name, _unknown("a free dimension", free))
            self._bind(name, value)

    def bound_shapes(self) -> dict[str, tuple[int, ...]]:
        unbound = sorted(name for name in self.free() if name not in self.values)
        if unbound:
            raise UnboundDimensionError(unbound, self._hint(unbound))
        return {
            name: tuple(self.values[size] if isinstance(size, str) else size for size in shape)
            for name, shape in self._shapes.items()
        }

    def _bind(self, name: str, given: Length, place: str = "") -> None:
        value = self._size(name, given, place) if isinstance(given, Dimension) else given
        if value < 0:
            raise BindingError(name, f"must be at least 0, not {value}")
        known = self.values.setdefault(name, value)
        if Expression.of(known) != Expression.of(value):
            raise BindingError(name, f"cannot be both {_stated(known)} and {_stated(given)}")

    def _size(self, name: str, given: Dimension, place: str) -> int:
        dimension = replace(given, name=name) if given.name in ("", place) else given
        known = self._ranges.setdefault(dimension.name, dimension)
        if known != dimension:
            raise BindingError(name, f"cannot be both {known} and {dimension}")
        return self._ties.get(dimension.name, dimension.size)

    def used_ranges(self, shapes: Iterable[tuple[int, ...]]) -> tuple[Dimension, ...]:
        """Return the dimensions that lengths depend on, in order of first use.

        Raises:
            BindingError: An expression has a dimension without a range, or is not what it says
                at the highest sizes, or is below 0.
        """
        used: dict[str, None] = {}
        for shape in shapes:
            for length in shape:
                if isinstance(length, Size):
                    used.update(dict.fromkeys(sorted(length.expression.names)))
        for name, value in self.values.items():
            self._check(name, value)
        return tuple(self._ranges[name] for name in used)

    def _check(self, name: str, value: int) -> None:
        if not isinstance(value, Size):
            return
        unknown = sorted(value.expression.names - self._ranges.keys())
        if unknown:
            raise BindingError(
                name, f"is {_stated(value)}, but {unknown[0]!r} has no range; give it one"
            )
        if at(value, highest_sizes(self._ranges.values())) != int(value):
            raise BindingError(name, f"is {_stated(value)}, made for another range")

    def free(self) -> dict[str, None]:
        """Return the names of the free dimensions, in the order of the inputs."""
        free: dict[str, None] = {}
        for name, shape in self._shapes.items():
            if shape == (_UNRANKED,):
                free[f"{name}:{_UNRANKED}"] = None
            else:
                free.update((size, None) for size in shape if isinstance(size, str))
        return free

    def _hint(self, unbound: list[str]) -> str:
        shapes: list[str] = []
        examples: dict[str, int] = {}
        for name, shape in self._shapes.items():
            if shape == (_UNRANKED,):
                shapes.append(f"--shape {name}=1x1")
            elif any(isinstance(size, str) and size not in self.values for size in shape):
                examples |= _examples(shape)
                sizes = (
                    self.values.get(s, examples[s]) if isinstance(s, str) else s for s in shape
                )
                shapes.append(f"--shape {name}={_text(tuple(sizes))}")
        hint = f"bind them, for example with {' '.join(shapes)}"
        if any(name.endswith(f":{_UNRANKED}") for name in unbound):
            return f"{hint} (an input that ends in {_UNRANKED} states no rank)"
        return f"{hint} or {' '.join(f'--dim {name}={examples.get(name, 1)}' for name in unbound)}"


def _examples(shape: tuple[int | str, ...]) -> dict[str, int]:
    """Return an example size for each open dimension; images get more than a single pixel."""
    return {
        size: _SIDE if len(shape) == _IMAGE_RANK and axis > 1 else 1
        for axis, size in enumerate(shape)
        if isinstance(size, str)
    }


def _unknown(what: str, known: Iterable[str]) -> str:
    return f"is not {what} of the model; known: {', '.join(map(repr, known)) or 'none'}"


def _stated(length: Length) -> str:
    """Return a length as it is given: a number, an expression or a range."""
    if isinstance(length, Size):
        return str(length.expression)
    if isinstance(length, Dimension):
        return str(length).removeprefix(f"{length.name}=")
    return str(length)


def _text(shape: tuple[int | str, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


_MAX_ELEMENTS = 65_536
"""One value fills an input of at most this length; a longer input is data, not a setting."""


def filled(name: str, tensor_type: TensorType, value: float) -> NDArray[np.generic]:
    """Return an input of this type with one value in all elements.

    Raises:
        BindingError: The type does not have the value, or the input is too long for one.
    """
    if math.prod(tensor_type.shape) > _MAX_ELEMENTS:
        raise BindingError(
            name, f"is {tensor_type}; --value supports at most {_MAX_ELEMENTS} elements"
        )
    dtype = numpy_dtype(tensor_type.dtype)
    try:
        with np.errstate(all="ignore"):
            array = np.full(tensor_type.shape, value, dtype)
            stored = np.full((), value, dtype).item()
            # Floating point rounds; an integer is the value or another.
            is_float = tensor_type.dtype.label.startswith(("float", "bfloat"))
            fits = math.isfinite(float(stored)) if is_float else bool(stored == value)
    except (OverflowError, TypeError, ValueError):
        fits = False
    if not fits:
        raise BindingError(name, f"is {tensor_type}, which cannot hold {value}")
    return array


def fix_inputs(
    graph: onnx.GraphProto, types: Mapping[str, TensorType], values: Mapping[str, float]
) -> None:
    """Turn inputs of a graph into initialisers.

    Args:
        graph: Changed in place.
        values: One for each input that is to be fixed.

    Raises:
        BindingError: There is no such input, or it cannot have that value.
    """
    for name, value in values.items():
        if name not in types:
            known = ", ".join(map(repr, types)) or "none"
            raise BindingError(name, f"is not an input of the model; known: {known}")
        array = filled(name, types[name], value)
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    kept = [each for each in graph.input if each.name not in values]
    del graph.input[:]
    graph.input.extend(kept)


def fixed_model(
    path: Path,
    dims: Mapping[str, Length],
    shapes: Mapping[str, tuple[Length, ...]],
    values: Mapping[str, float],
) -> onnx.ModelProto:
    """Return a model whose fixed inputs are constants, all its weights inside.

    Args:
        path: An ONNX file.
        dims: Values of free dimensions by name; those of other inputs stay free.
        shapes: Whole shapes of inputs by name.
        values: One for each input that is to be fixed.

    Raises:
        ModelError: The file cannot be read, or the arguments do not fit it.
    """
    with about_file(path):
        model = load_model(path)
        arrays = fixed_feeds(model.graph, dims, shapes, values)
        for name, array in arrays.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        kept = [each for each in model.graph.input if each.name not in arrays]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        try:
            embed(model.graph, path.parent)
        except UnreadableTensorError as error:
            raise error.as_missing_data() from error
        return model


def fixed_feeds(
    graph: onnx.GraphProto,
    dims: Mapping[str, Length],
    shapes: Mapping[str, tuple[Length, ...]],
    values: Mapping[str, float],
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of fixed inputs, the sizes of other inputs unknown.

    Args:
        graph: Of the model.
        dims: Values of free dimensions by name, those of other inputs among them.
        shapes: Whole shapes of inputs by name.
        values: One for each input that is fixed.

    Raises:
        BindingError: There is no such input, or it cannot have that value.
        UnboundDimensionError: A fixed input has a free dimension.
    """
    fixed = onnx.GraphProto(input=[each for each in graph.input if each.name in values])
    free, names = open_names(fixed)
    for name in values:
        if name not in names:
            known = ", ".join(repr(each.name) for each in graph.input)
            raise BindingError(name, f"is not an input of the model; known: {known}")
    types = bind(
        fixed,
        {name: size for name, size in dims.items() if name in free},
        {name: shape for name, shape in shapes.items() if name in names},
    ).inputs
    return {name: filled(name, types[name], value) for name, value in values.items()}


def fixed_arrays(
    path: Path,
    dims: Mapping[str, Length],
    shapes: Mapping[str, tuple[Length, ...]],
    values: Mapping[str, float],
) -> dict[str, NDArray[np.generic] | None]:
    """Return for each input, in the model's order, its elements if it is fixed at a value.

    Raises:
        ModelError: The file cannot be read, or the arguments do not fit it.
    """
    with about_file(path):
        types = bind(load_model(path).graph, dims, shapes).inputs
        return {
            name: filled(name, each, values[name]) if name in values else None
            for name, each in types.items()
        }
