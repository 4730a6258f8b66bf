"""What a model states about itself: inputs, outputs, metadata, other files."""

import json
from pathlib import Path
from typing import Any, TypedDict

from arenite.planner.errors import needing

with needing("onnx", "onnx", "building an ONNX model"):
    import onnx

_MADE_UP = "unk__"
"""Begins the names that inference of shapes gives to lengths."""


class Port(TypedDict):
    """An input or output: its type, and the name, the number or None for each axis."""

    name: str
    type: str
    shape: list[int | str | None]
    is_ranked: bool


class Interface(TypedDict):
    """What a model states about itself; `parts` are its files of external data."""

    inputs: list[Port]
    outputs: list[Port]
    initializers: list[Port]
    meta: dict[str, Any]
    parts: list[str]


def write_interface(path: Path, output: Path) -> None:
    """Write the interface of a model as JSON.

    Raises:
        ValueError: The file is no ONNX model.
    """
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ValueError("Protobuf parsing failed.") from error
    if not model.HasField("graph"):
        raise ValueError("No graph was found in the protobuf.")
    output.write_text(json.dumps(_interface(model)))


def _interface(model: onnx.ModelProto) -> Interface:
    graph = model.graph
    parts = sorted(
        {
            entry.value
            for tensor in onnx.external_data_helper._get_all_tensors(model)  # noqa: SLF001
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )
    constants = {each.name for each in graph.initializer}
    constants.update(each.values.name for each in graph.sparse_initializer)
    stated = [_port(each) for each in graph.input]
    return {
        "inputs": [each for each in stated if each["name"] not in constants],
        "initializers": [each for each in stated if each["name"] in constants],
        "outputs": _outputs(model),
        "meta": {
            "custom_metadata_map": {each.key: each.value for each in model.metadata_props},
            "description": model.doc_string,
            "domain": model.domain,
            "graph_description": graph.doc_string,
            "graph_name": graph.name,
            "producer_name": model.producer_name,
            "version": model.model_version if model.HasField("model_version") else 2**63 - 1,
        },
        "parts": parts,
    }


def _outputs(model: onnx.ModelProto) -> list[Port]:
    """Return the outputs, with the types and shapes that the graph tells of those without."""
    stated = [_port(each) for each in model.graph.output]
    if all(each["is_ranked"] for each in stated):
        return stated
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
    except (onnx.shape_inference.InferenceError, ValueError):  # or above 2 GB
        return stated
    for each, other in zip(stated, map(_port, inferred), strict=True):
        if not each["is_ranked"]:
            each["type"] = other["type"]
            each["shape"] = [
                None if str(length).startswith(_MADE_UP) else length for length in other["shape"]
            ]
    return stated


def _port(value: onnx.ValueInfoProto) -> Port:
    tensor = value.type.tensor_type
    is_ranked = tensor.HasField("shape")
    return {
        "name": value.name,
        "type": _type_text(value.type),
        "shape": [_length(each) for each in tensor.shape.dim] if is_ranked else [],
        "is_ranked": is_ranked,
    }


def _length(axis: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if axis.HasField("dim_value") and axis.dim_value >= 0:
        return int(axis.dim_value)
    return str(axis.dim_param) or None


def _type_text(stated: onnx.TypeProto) -> str:
    kind = stated.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({_type_text(stated.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_text(stated.optional_type.elem_type)})"
    if kind == "map_type":
        key = _element_text(stated.map_type.key_type)
        return f"map({key},{_type_text(stated.map_type.value_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({_element_text(stated.sparse_tensor_type.elem_type)})"
    return f"tensor({_element_text(stated.tensor_type.elem_type)})"


def _element_text(number: int) -> str:
    return str(onnx.TensorProto.DataType.Name(number)).lower()
