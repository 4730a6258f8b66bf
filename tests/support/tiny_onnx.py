"""Small ONNX models, written in the onnx package's own text form."""

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.program import Program


def parse(text: str, *, opset: int = 17, microsoft: bool = False) -> onnx.ModelProto:
    """Return the model of a graph such as `(float[2] x) => (y) <float[2] w> { y = Add(x, w) }`.

    What the angle brackets give a type but no value, and no node writes, is a weight of zeros.
    """
    domains = [f'"" : {opset}']
    if microsoft:
        domains.append('"com.microsoft" : 1')
    model = onnx.parser.parse_model(
        f"<ir_version: 8, opset_import: [{', '.join(domains)}]> tiny {text}"
    )
    written = {name for node in model.graph.node for name in node.output}
    for value in model.graph.value_info:
        if value.name not in written:
            tensor = value.type.tensor_type
            shape = [dimension.dim_value for dimension in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            weight = onnx.numpy_helper.from_array(np.zeros(shape, dtype), value.name)
            model.graph.initializer.append(weight)
    return model


def with_random_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return the model with its floating-point weights replaced by random numbers."""
    generator = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and not array.any():
            numbers = generator.standard_normal(array.shape).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    return model


def with_random_integers(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return the model with weights of random numbers, and of integers, for zeros.

    Signed ones have 7 bits: of 8 bits, ONNX Runtime's sums saturate on x86-64 without VNNI.
    """
    generator = np.random.default_rng(seed)
    for tensor in with_random_weights(model, seed).graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype in (np.int8, np.uint8) and array.size > 1 and not array.any():
            low, end = (-64, 64) if array.dtype == np.int8 else (0, 256)
            numbers = generator.integers(low, end, array.shape, array.dtype)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    return model


def save(folder: Path, model: onnx.ModelProto) -> Path:
    """Write the model to the folder and return the file."""
    path = folder / "tiny.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def read_text(
    folder: Path,
    text: str,
    *,
    opset: int = 17,
    microsoft: bool = False,
    dims: dict[str, int] | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
) -> Program:
    """Return what the importer makes of a graph in text form."""
    path = save(folder, parse(text, opset=opset, microsoft=microsoft))
    return read_onnx(path, dims=dims or {}, shapes=shapes or {})
