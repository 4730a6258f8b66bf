"""Constants whose elements lie in a file beside the model."""

from pathlib import Path, PurePath

import onnx
import onnx.checker
import onnx.numpy_helper
from numpy import asarray, generic
from numpy.typing import NDArray
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from arenite.planner.errors import MissingDataError, about_file
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.order import subgraphs
from arenite.planner.importers.onnx.types import read_dtype

_UNREADABLE = (OSError, TypeError, ValueError, onnx.checker.ValidationError)
_KEYS = frozenset({"basepath", "checksum", "length", "location", "offset"})


class UnreadableTensorError(Exception):
    """The elements of a constant cannot be read; the text says why and what to do.

    Attributes:
        is_external: Whether a file beside the model is at fault.
    """

    def __init__(self, reason: str, *, is_external: bool) -> None:
        super().__init__(reason)
        self.is_external = is_external


def read_tensor(tensor: onnx.TensorProto, folder: Path) -> NDArray[generic]:
    """Return the elements of a constant.

    Args:
        tensor: Tensor of the model.
        folder: Where external data lie; nothing outside is opened.

    Raises:
        UnreadableTensorError: They are damaged, or their file is not what the model states.
    """
    is_external = uses_external_data(tensor)
    loaded = tensor
    if is_external:
        _check_keys(tensor)
    try:
        if is_external:
            loaded = onnx.TensorProto()
            loaded.CopyFrom(tensor)
            load_external_data_for_tensor(loaded, str(folder))
        return asarray(onnx.numpy_helper.to_array(loaded)).reshape(tuple(tensor.dims))
    except _UNREADABLE as error:
        found = _fault(tensor, folder) if is_external else None
        reason = found or f"its value cannot be read: {' '.join(str(error).split())}"
        raise UnreadableTensorError(reason, is_external=is_external) from error


def embed(graph: onnx.GraphProto, folder: Path) -> None:
    """Read the constants of a graph that lie in files beside the model into it.

    Raises:
        UnreadableTensorError: One is damaged, or its file is not what the model states.
    """
    for tensor in graph.initializer:
        if uses_external_data(tensor):
            array = asarray(read_tensor(tensor, folder))
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and uses_external_data(attribute.t):
                array = asarray(read_tensor(attribute.t, folder))
                attribute.t.CopyFrom(onnx.numpy_helper.from_array(array, attribute.t.name))
        for subgraph in subgraphs(node):
            embed(subgraph, folder)


def check_files(path: Path) -> None:
    """Return if every file beside a model is as it states; nothing in them is read.

    Raises:
        MissingDataError: One is missing, too short, a link, or outside the folder.
        ModelError: The model itself cannot be read.
    """
    with about_file(path):
        _check_files_of(load_model(path).graph, path.parent)


def _check_files_of(graph: onnx.GraphProto, folder: Path) -> None:
    for tensor in graph.initializer:
        fault = external_fault(tensor, folder)
        if fault is not None:
            raise MissingDataError(tensor.name, fault)
    for node in graph.node:
        for subgraph in subgraphs(node):
            _check_files_of(subgraph, folder)


def external_fault(tensor: onnx.TensorProto, folder: Path) -> str | None:
    """Return what is wrong with the file that a constant lies in, None if nothing is known."""
    return _fault(tensor, folder) if uses_external_data(tensor) else None


def _check_keys(tensor: onnx.TensorProto) -> None:
    """Return if nothing unknown is stated: a damaged "offset" would make it start at 0."""
    unknown = {str(entry.key) for entry in tensor.external_data} - _KEYS
    if unknown:
        raise UnreadableTensorError(
            f"its value lies in another file, of which the model states {min(unknown)!r}; known "
            f"are {', '.join(sorted(_KEYS))}",
            is_external=True,
        )


def _fault(tensor: onnx.TensorProto, folder: Path) -> str | None:
    """Return what is wrong with the file of a constant, None if that is not known here."""
    stated = {entry.key: entry.value for entry in tensor.external_data}
    location = stated.get("location", "")
    if not isinstance(location, str):  # protobuf returns damaged text as bytes
        return "its value lies in another file, whose name is not UTF-8 text"
    parts = PurePath(location)
    if not parts.parts:
        return "its value lies in another file, of which the model states no name"
    if parts.is_absolute() or ".." in parts.parts:
        return (
            f"its value is said to lie in {location!r}, outside the folder of the model, where "
            "nothing is read; move the file beside the model and save the model with its name"
        )
    path = folder / parts
    if path.is_symlink():
        return f"its value lies in {location!r}, which is a link; put the file itself there"
    if not path.exists():
        return (
            f"its value lies in {location!r}, which is missing; put that file into the folder "
            f"{str(folder)!r}, where the model is"
        )
    if not path.is_file():
        return f"its value lies in {location!r}, which is not a plain file"
    return _wrong_length(tensor, stated, location, path)


def _wrong_length(
    tensor: onnx.TensorProto, stated: dict[str, str], location: str, path: Path
) -> str | None:
    num_elements = 1
    for size in tensor.dims:
        num_elements *= size
    dtype = read_dtype(tensor.data_type)
    try:
        start = int(stated.get("offset") or 0)
        held = path.stat().st_size
        length = int(stated["length"]) if "length" in stated else held - start
    except (OSError, ValueError):
        return None
    if start + length > held:
        return (
            f"its value is bytes {start} to {start + length} of {location!r}, which has "
            f"{held}: it is truncated or another model's; copy it again"
        )
    if dtype is not None and length != dtype.num_bytes(num_elements):
        return (
            f"its value takes {dtype.num_bytes(num_elements)} B, of {location!r} it gets "
            f"{max(length, 0)}; copy the model and that file again, together"
        )
    return None
