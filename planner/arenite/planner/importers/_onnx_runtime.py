"""Ask ONNX Runtime for the types that the onnx package cannot infer.

It knows its own operators, such as those of `com.microsoft`. What it does not infer
either is found by running the one operator.
"""

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError
from arenite.planner.importers._onnx_types import (
    TensorType,
    numpy_dtype,
    read_runtime_dtype,
    read_type,
)


class RuntimeRefusalError(Exception):
    """ONNX Runtime does not know the operator or cannot run it; the text says why."""


def runtime_types(model: onnx.ModelProto, label: str) -> list[TensorType | None]:
    """Return the types of a single-node model's outputs, None for one that stays unknown.

    A shape that ONNX Runtime does not infer is the one it makes from zeros, provided
    that it makes the same from ones.

    Args:
        model: Every input of known type.
        label: The operator, for people.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        RuntimeRefusalError: It refuses the model.
    """
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as native
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "onnxruntime", "onnx", f"finding the shapes of what {label} makes"
        ) from error
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
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        outputs = [(read_runtime_dtype(o.type), tuple(o.shape)) for o in session.get_outputs()]
        if not all(_is_known(shape) for _, shape in outputs):
            zeros, ones = (session.run(None, _filled_inputs(model, fill)) for fill in (0, 1))
            outputs = [
                (dtype, shape if _is_known(shape) else _common_shape(zero, one))
                for (dtype, shape), zero, one in zip(outputs, zeros, ones, strict=True)
            ]
    except refusals as error:
        raise RuntimeRefusalError(f"ONNX Runtime refuses it: {error}") from error
    return [
        TensorType(dtype, shape) if dtype is not None and _is_known(shape) else None
        for dtype, shape in outputs
    ]


def _is_known(shape: tuple[object, ...]) -> bool:
    return all(isinstance(dimension, int) for dimension in shape)


def _common_shape(a: NDArray[np.generic], b: NDArray[np.generic]) -> tuple[int, ...] | tuple[None]:
    """Return the shape of both results, an unknown one if they differ."""
    return a.shape if a.shape == b.shape else (None,)


def _filled_inputs(model: onnx.ModelProto, fill: int) -> dict[str, NDArray[np.generic]]:
    feeds = {}
    for value in model.graph.input:
        tensor_type = read_type(value.type)
        assert tensor_type is not None
        feeds[value.name] = np.full(tensor_type.shape, fill, numpy_dtype(tensor_type.dtype))
    return feeds
