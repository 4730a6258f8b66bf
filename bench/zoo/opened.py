"""Networks whose sizes are left open, as exporters write models for inputs of varying size."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper

_INFERRED = -1
"""A length of a Reshape that follows from the others."""


def opened(
    build: Callable[[int], onnx.ModelProto], one: int, other: int, name: str
) -> onnx.ModelProto:
    """Return the network of `build(one)` with the lengths that depend on its argument open.

    Axes of inputs and outputs whose length is the argument are named `name`; others have no name.

    Args:
        build: Returns a network for a size, with the same nodes and weights whatever it is.
        one: A size.
        other: Another, by which the lengths that depend on it are found.
        name: Name of the dimension.

    Raises:
        ValueError: The networks differ in more than the lengths of tensors and of Reshapes.
    """
    model, beside = build(one), build(other)
    for value, another in zip(
        (*model.graph.input, *model.graph.output),
        (*beside.graph.input, *beside.graph.output),
        strict=True,
    ):
        lengths = value.type.tensor_type.shape.dim
        for axis, length in enumerate(another.type.tensor_type.shape.dim):
            found = lengths[axis].dim_value
            if found != length.dim_value:
                is_plain = (found, length.dim_value) == (one, other)
                lengths[axis].dim_param = name if is_plain else f"{value.name}_{axis}"
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor, another in zip(model.graph.initializer, beside.graph.initializer, strict=True):
        if tensor == another:
            continue
        lengths, others = numpy_helper.to_array(tensor), numpy_helper.to_array(another)
        differs = lengths != others if lengths.shape == others.shape else np.ones(2, bool)
        if tensor.name not in shapes or np.sum(differs) != 1:
            raise ValueError(f"{tensor.name!r} depends on {name}, and not as a shape of a Reshape")
        tensor.CopyFrom(
            numpy_helper.from_array(np.where(differs, _INFERRED, lengths), tensor.name)
        )
    return model
