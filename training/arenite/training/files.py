"""Model files that training reads and step files that it writes."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.shape_inference
import onnx.version_converter

from arenite.planner import Program
from arenite.planner.errors import (
    MissingDependencyError,
    ModelFormatError,
    about_file,
    named_instead,
)
from arenite.planner.files import write_atomically
from arenite.planner.importers.onnx import (
    MOST_BYTES,
    STATES_KEY,
    embed,
    load_model,
    opset_versions,
    read_onnx,
)
from arenite.planner.quiet_onnxruntime import quiet_options
from arenite.training.errors import BatchError, TrainingError

OLDEST_OPSET: Final = 17
"""Gradients add up by ScatterElements and ScatterND, which do so since operator set 16."""

_NO_DIMS: Mapping[str, int] = MappingProxyType({})
_NO_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType({})


def read_for_training(
    path: Path,
    batch: int | None = None,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
) -> Program:
    """Return the program of an ONNX file, with its weights; `program_for_training` does the rest.

    Raises:
        ModelError: It cannot be read.
        TrainingError: It cannot be converted to a newer operator set.
        BatchError: It does not take a batch of this size.
    """
    model = load_model(path)
    with about_file(path):
        embed(model.graph, path.parent)
    return program_for_training(model, batch, dims=dims, shapes=shapes, path=path)


def program_for_training(
    model: onnx.ModelProto,
    batch: int | None = None,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    path: Path = Path("model.onnx"),
) -> Program:
    """Return the program of an ONNX model, with its weights.

    Args:
        model: The model, its weights inside; changed in place.
        batch: Images or sequences per step: the length of the first axis of every input. By
            default the model's own.
        dims: Values of free dimensions by name.
        shapes: Whole shapes of inputs by name.
        path: File to name in errors.

    Raises:
        ModelError: It cannot be read.
        TrainingError: It cannot be converted to a newer operator set.
        BatchError: It does not take a batch of this size.
    """
    with about_file(path):
        model = _converted(model)
        stated = dict(shapes)
        if batch is not None:
            _set_batch(model, batch)
            stated = {name: (batch, *shape[1:]) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory(prefix="arenite-train-") as folder:
        twin = Path(folder) / path.name
        twin.write_bytes(model.SerializeToString())
        with named_instead(twin, path):
            try:
                return read_onnx(twin, dims=dims, shapes=stated, weights=True)
            except ModelFormatError as error:
                if batch is None:
                    raise
                raise BatchError(
                    f"a batch of {batch} does not fit the model: {error.reason}", path=path
                ) from error


def _converted(model: onnx.ModelProto) -> onnx.ModelProto:
    if opset_versions(model).get("", OLDEST_OPSET) >= OLDEST_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, OLDEST_OPSET)
    except (
        onnx.version_converter.ConvertError, onnx.shape_inference.InferenceError, RuntimeError,
        ValueError, IndexError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"it cannot be converted to operator set {OLDEST_OPSET}: {reason[:200]}; export it at "
            f"operator set {OLDEST_OPSET} or later"
        ) from error


def _set_batch(model: onnx.ModelProto, batch: int) -> None:
    """Set the first axis of every input, and of shapes that contain the old batch."""
    graph = model.graph
    known = {tensor.name for tensor in graph.initializer}
    old: int | None = None
    for value in graph.input:
        axes = value.type.tensor_type.shape.dim
        if value.name in known or not axes:
            continue
        if axes[0].HasField("dim_value"):
            old = axes[0].dim_value
        axes[0].dim_value = batch
    if old is not None and old != batch:
        _free_reshapes(graph, old)
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _free_reshapes(graph: onnx.GraphProto, old: int) -> None:
    """Make each Reshape whose shape begins with the old batch keep the first axis."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[:1] and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    for number, node in enumerate(graph.node):
        if node.op_type != "Reshape" or len(node.input) < 2 or node.input[1] not in tensors:
            continue
        shape = onnx.numpy_helper.to_array(tensors[node.input[1]])
        if shape.size > 1 and shape.flat[0] == old:
            name = f"{node.input[1]}/batch/{number}"
            changed = np.array([0, *shape.reshape(-1)[1:]], np.int64)
            graph.initializer.append(onnx.numpy_helper.from_array(changed, name))
            node.input[1] = name


TRAINING_KEY: Final = "arenite.training"
"""Key of the metadata of a step: JSON of the loss, the optimiser and so on."""


def state_metadata(model: onnx.ModelProto, pairs: Mapping[str, str]) -> None:
    """Write the pairs into a model's metadata: input by input, the output that replaces it."""
    entry = model.metadata_props.add()
    entry.key, entry.value = STATES_KEY, json.dumps(pairs)


def training_metadata(model: onnx.ModelProto, facts: Mapping[str, object]) -> None:
    entry = model.metadata_props.add()
    entry.key, entry.value = TRAINING_KEY, json.dumps(facts)


def write_step(path: Path, model: onnx.ModelProto) -> None:
    """Write a step whole or not at all, once the ONNX checker and ONNX Runtime load it.

    Raises:
        TrainingError: It takes 2 GiB or more, or does not load.
        OutputError: It cannot be written; an existing file stays as it was.
    """
    with about_file(path):
        if model.ByteSize() > MOST_BYTES:
            raise TrainingError("the step takes 2 GiB or more, which an ONNX file cannot hold")
        write_atomically(path, model.SerializeToString(), check=_check)


def _check(path: Path) -> None:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise TrainingError(f"the step is not a valid ONNX model: {_line(error)}") from error
    try:
        options = quiet_options("loading a training step")
    except MissingDependencyError:
        return
    import onnxruntime

    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own classes are all but Exception itself
        raise TrainingError(f"ONNX Runtime does not load the step: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
