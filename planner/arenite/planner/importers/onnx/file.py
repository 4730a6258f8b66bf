"""Read an ONNX file, and refuse anything else."""

from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.defs
import onnx.inliner
from google.protobuf.message import DecodeError

from arenite.planner.errors import ModelFormatError, UnsupportedModelError, about_file
from arenite.planner.files import read_model
from arenite.planner.importers.onnx.order import constant_names, subgraphs

OLDEST_OPSET = 7
_LARGEST_VERSION = (1 << 31) - 1


def load_model(path: Path) -> onnx.ModelProto:
    """Return the model, its own functions inlined, external data left where it is.

    Raises:
        ModelFormatError: The file cannot be read or is not an ONNX model.
        UnsupportedModelError: Its operator set is too old, or newer than the onnx package.
    """
    with about_file(path):
        return _parsed(read_model(path))


def _parsed(data: bytes) -> onnx.ModelProto:
    if not data:
        raise ModelFormatError("the file is empty")
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelFormatError(f"not an ONNX model, or truncated: {error}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise ModelFormatError("not an ONNX model: it has no graph or names no operator set")
    _check_versions(model)
    _check_opset(model)
    if model.functions:
        model = _inline(model)
    if not all(isinstance(text, str) for text in _texts(model)):
        raise ModelFormatError("not an ONNX model: a name is not UTF-8 text")
    if not model.graph.output:
        raise ModelFormatError("the graph has no output")
    if not all(value.name for value in (*model.graph.input, *model.graph.output)):
        raise ModelFormatError("an input or output of the graph has no name")
    return model


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each operator set by its domain, "" for ONNX's own."""
    return {normal_domain(opset.domain): opset.version for opset in model.opset_import}


def normal_domain(domain: str) -> str:
    """Return "" for either spelling of ONNX's own domain, other domains unchanged."""
    return "" if domain == "ai.onnx" else domain


def _texts(model: onnx.ModelProto) -> Iterator[object]:
    """Yield the names that reading relies on; protobuf returns damaged ones as bytes."""
    yield from (opset.domain for opset in model.opset_import)
    yield from _graph_texts(model.graph)


def _graph_texts(graph: onnx.GraphProto) -> Iterator[object]:
    yield from constant_names(graph)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dimension.dim_param for dimension in value.type.tensor_type.shape.dim)
    for node in graph.node:
        yield from _node_texts(node)


def _node_texts(node: onnx.NodeProto) -> Iterator[object]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    yield from (attribute.name for attribute in node.attribute)
    for subgraph in subgraphs(node):
        yield from _graph_texts(subgraph)


def _check_versions(model: onnx.ModelProto) -> None:
    """Return if the versions are numbers that the onnx package takes for such."""
    for number in (model.ir_version, *(opset.version for opset in model.opset_import)):
        if not 0 <= number <= _LARGEST_VERSION:
            raise ModelFormatError(f"not an ONNX model: version {number} is out of range")


def _check_opset(model: onnx.ModelProto) -> None:
    version = opset_versions(model).get("")
    newest = onnx.defs.onnx_opset_version()
    if version is None:
        return
    if version < OLDEST_OPSET:
        raise UnsupportedModelError(
            "ai.onnx",
            f"operator set {version} is older than {OLDEST_OPSET}; "
            "convert the model with onnx.version_converter",
        )
    if version > newest:
        raise UnsupportedModelError(
            "ai.onnx",
            f"operator set {version} is newer than {newest}, the newest that the installed "
            "onnx package knows; update it",
        )


def _inline(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise ModelFormatError(f"functions cannot be inlined: {error}") from error
