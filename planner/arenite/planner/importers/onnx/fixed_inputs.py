"""Inputs of a model that the user fixes at a value: constants from then on."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.planner.errors import BindingError, about_file
from arenite.planner.importers.onnx.binding import bind, open_names
from arenite.planner.importers.onnx.external_data import UnreadableTensorError, embed
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.types import TensorType, numpy_dtype

_MAX_ELEMENTS = 65_536
"""One value fills an input; what is longer is data and no setting."""


def filled(name: str, tensor_type: TensorType, value: float) -> NDArray[np.generic]:
    """Return an input of this type with one value in all elements.

    Raises:
        BindingError: The type does not have the value, or the input is too long for one.
    """
    if math.prod(tensor_type.shape) > _MAX_ELEMENTS:
        raise BindingError(name, f"is {tensor_type}; one value fills {_MAX_ELEMENTS} elements")
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
        raise BindingError(name, f"is {tensor_type}, which cannot be {value}")
    return array


def fix_inputs(
    graph: onnx.GraphProto, types: Mapping[str, TensorType], values: Mapping[str, float]
) -> None:
    """Turn inputs of a graph into initialisers.

    Args:
        graph: Changed in place.
        types: Of the inputs.
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
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
) -> onnx.ModelProto:
    """Return a model whose fixed inputs are constants, all its weights inside.

    Args:
        path: An ONNX file.
        dims: Values of free dimensions by name; those of other inputs stay free.
        shapes: Whole shapes of inputs by name.
        values: One for each input that is to be fixed.

    Raises:
        ModelError: The file cannot be read, or what is given does not fit it.
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
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
) -> dict[str, NDArray[np.generic]]:
    """Return what fixed inputs are fed, the sizes of other inputs unknown.

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
