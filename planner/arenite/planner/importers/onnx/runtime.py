"""Ask ONNX Runtime for the types that the onnx package cannot infer.

It knows its own operators, such as those of `com.microsoft`. What it cannot infer
either is found by running the operator by itself.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.planner.errors import needing
from arenite.planner.importers.onnx.types import (
    TensorType,
    numpy_dtype,
    read_runtime_dtype,
    read_type,
)
from arenite.planner.quiet_onnxruntime import quiet_options
from arenite.planner.tensors import DType

_NUM_RUNS = 3
_MOST_ELEMENTS = 1 << 28
"""Of an input to run an operator on: damaged files state sizes that no machine has."""
_MOST_AXES = 1 << 20
"""Integers in a row that may be a shape: ONNX Runtime makes as many axes of them at once."""


class RuntimeRefusalError(Exception):
    """ONNX Runtime does not know the operator or cannot run it; the text says why."""


def runtime_types(model: onnx.ModelProto, label: str) -> list[TensorType | None]:
    """Return the types of a single-node model's outputs, None where it stays unknown.

    A shape that ONNX Runtime does not infer is taken from runs, provided that runs on
    different values agree.

    Args:
        model: The model; every input has a known type.
        label: Name of the operator, for messages.

    Raises:
        RuntimeRefusalError: It refuses the model.
    """
    purpose = f"finding the shapes of the results of {label}"
    with needing("onnxruntime", "onnx", purpose):
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as native
    _check_shapes(model)
    refusals = (
        native.EPFail,
        native.Fail,
        native.InvalidArgument,
        native.InvalidGraph,
        native.InvalidProtobuf,
        native.NotImplemented,
        native.RuntimeException,
        RuntimeError,
        TypeError,
        ValueError,
    )
    options = quiet_options(purpose)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    data = model.SerializeToString()
    try:
        # The public session also needs a kernel for this machine; loading is enough to infer.
        loaded = native.InferenceSession(options, data, False, False)
        outputs = [(read_runtime_dtype(o.type), tuple(o.shape)) for o in loaded.outputs_meta]
        if not all(_is_known(shape) for _, shape in outputs):
            session = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"]
            )
            runs = [session.run(None, _feeds(model, variant)) for variant in range(_NUM_RUNS)]
            outputs = [
                (dtype, shape if _is_known(shape) else _common_shape(results))
                for (dtype, shape), *results in zip(outputs, *runs, strict=True)
            ]
    except refusals as error:
        raise RuntimeRefusalError(f"ONNX Runtime rejects it: {error}") from error
    return [
        TensorType(dtype, shape) if dtype is not None and None not in shape else None
        for dtype, shape in outputs
    ]


def _check_shapes(model: onnx.ModelProto) -> None:
    """Return if no input can be a shape of more axes than there is memory for."""
    for value in model.graph.input:
        tensor_type = read_type(value.type)
        if (
            tensor_type is not None
            and tensor_type.dtype is DType.INT64
            and len(tensor_type.shape) == 1
            and tensor_type.shape[0] > _MOST_AXES
        ):
            raise RuntimeRefusalError(
                f"input {value.name!r}, {tensor_type}, is too large for a shape"
            )


def _is_known(shape: tuple[object, ...]) -> bool:
    """Tell whether a shape is known; () may also stand for an unknown rank."""
    return bool(shape) and all(isinstance(size, int) and size >= 0 for size in shape)


def _common_shape(results: Sequence[NDArray[np.generic]]) -> tuple[int, ...] | tuple[None]:
    """Return the shape of all results, an unknown one if they differ."""
    shapes = {result.shape for result in results}
    return shapes.pop() if len(shapes) == 1 else (None,)


def _feeds(model: onnx.ModelProto, variant: int) -> dict[str, NDArray[np.generic]]:
    """Return inputs of zeros for variant 0, of small increasing numbers for others.

    Integers may be indices, so they are at most 1.
    """
    feeds = {}
    for position, value in enumerate(model.graph.input):
        tensor_type = read_type(value.type)
        assert tensor_type is not None
        dtype = numpy_dtype(tensor_type.dtype)
        if math.prod(tensor_type.shape) > _MOST_ELEMENTS:
            raise RuntimeRefusalError(
                f"input {value.name!r}, {tensor_type}, is too large for a trial run"
            )
        numbers = np.arange(math.prod(tensor_type.shape)) + position + variant
        if not np.issubdtype(dtype, np.floating):
            numbers %= 2
        if not variant:
            numbers *= 0
        feeds[value.name] = numbers.reshape(tensor_type.shape).astype(dtype)
    return feeds
