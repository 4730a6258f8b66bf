"""Constants of an ONNX graph, and those whose elements lie in a file beside the model.

Every tensor that the file holds is a constant: initialisers, and tensors among the attributes of
nodes, in the graph and in the graphs inside it. Sparse initialisers are not read.
"""

from collections.abc import Iterator
from pathlib import Path, PurePath

import onnx
import onnx.checker
import onnx.numpy_helper
from numpy import asarray, generic
from numpy.typing import NDArray
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from arenite.planner.errors import (
    MissingDataError,
    ModelFormatError,
    UnsupportedModelError,
    about_file,
)
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.order import subgraphs
from arenite.planner.importers.onnx.types import read_dtype

MOST_BYTES = (1 << 31) - 1
"""The most that protobuf can write."""

_UNREADABLE = (
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    onnx.checker.ValidationError,
)
_KEYS = frozenset({"basepath", "checksum", "length", "location", "offset"})


class UnreadableTensorError(ModelFormatError):
    """The elements of a constant cannot be read.

    Attributes:
        fault: The reason, and the remedy.
        is_external: Whether a file beside the model is at fault.
    """

    def __init__(self, tensor: str, fault: str, *, is_external: bool) -> None:
        super().__init__(f"tensor {tensor!r}: {fault}")
        self.tensor = tensor
        self.fault = fault
        self.is_external = is_external

    def as_missing_data(self) -> MissingDataError:
        """Return the error for a model that can still be planned as written."""
        return MissingDataError(self.tensor, self.fault)


def held_tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield the constants of a graph and of the graphs inside it, each with its name."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t.name or next(iter(node.output), node.name), attribute.t
        for subgraph in subgraphs(node):
            yield from held_tensors(subgraph)


def read_tensor(tensor: onnx.TensorProto, folder: Path) -> NDArray[generic]:
    """Return the elements of a constant.

    Args:
        folder: Where external data lie; nothing outside is opened, except the files of the same
            cached repository that links lead to.

    Raises:
        UnreadableTensorError: They are damaged, or their file is not as the model states.
    """
    is_external = uses_external_data(tensor)
    loaded = _loaded(tensor.name, tensor, folder) if is_external else tensor
    try:
        return asarray(onnx.numpy_helper.to_array(loaded)).reshape(tuple(tensor.dims))
    except _UNREADABLE as error:
        fault = f"cannot be read: {' '.join(str(error).split())}"
        raise UnreadableTensorError(tensor.name, fault, is_external=is_external) from error


def embed(graph: onnx.GraphProto, folder: Path) -> int:
    """Read the constants that lie in files beside the model into a graph; return their bytes.

    Raises:
        UnreadableTensorError: The file of a constant is not as the model states.
        UnsupportedModelError: All together have 2 GiB or more.
    """
    total = 0
    for name, tensor in held_tensors(graph):
        if uses_external_data(tensor):
            if total + (_stated_bytes(tensor) or 0) > MOST_BYTES:
                raise UnsupportedModelError(name, "the weights up to this one take 2 GiB or more")
            tensor.CopyFrom(_loaded(name, tensor, folder))
            total += len(tensor.raw_data)
    return total


def check_files(path: Path) -> None:
    """Return if every file beside a model is as it states; nothing in them is read.

    Raises:
        MissingDataError: One is missing, too short, or outside the folder and its repository.
        ModelError: The model itself cannot be read.
    """
    with about_file(path):
        for name, tensor in held_tensors(load_model(path).graph):
            fault = _fault(tensor, path.parent) if uses_external_data(tensor) else None
            if fault is not None:
                raise MissingDataError(name, fault)


def _loaded(name: str, tensor: onnx.TensorProto, folder: Path) -> onnx.TensorProto:
    """Return a tensor with the elements inside that lie in a file beside the model."""
    unknown = {str(entry.key) for entry in tensor.external_data} - _KEYS
    if unknown:  # a damaged "offset" would make it start at 0
        raise UnreadableTensorError(
            name,
            f"external data key {min(unknown)!r} is unknown; known: {', '.join(sorted(_KEYS))}",
            is_external=True,
        )
    loaded = onnx.TensorProto()
    loaded.CopyFrom(tensor)
    try:
        load_external_data_for_tensor(loaded, str(_follow(loaded, folder)))
        if len(loaded.raw_data) != (_stated_bytes(tensor) or len(loaded.raw_data)):
            raise ValueError(f"{len(loaded.raw_data):,} B do not match its shape and type")
    except _UNREADABLE as error:
        fault = _fault(tensor, folder)
        if fault is None:
            fault = f"cannot be read: {' '.join(str(error).split())}"
        raise UnreadableTensorError(name, fault, is_external=True) from error
    loaded.data_location = onnx.TensorProto.DEFAULT
    del loaded.external_data[:]
    return loaded


def _follow(tensor: onnx.TensorProto, folder: Path) -> Path:
    """Return the folder of the file of a constant, whose location becomes the target of a link.

    A link that leaves the folder and its repository stays: the onnx package refuses it.
    """
    for entry in tensor.external_data:
        if entry.key == "location" and isinstance(entry.value, str):
            location = PurePath(entry.value)
            if location.is_absolute() or ".." in location.parts or not location.parts:
                return folder
            target = (folder / location).resolve()
            if target != folder.resolve() / location and _is_inside(target, folder):
                entry.value = target.name
                return target.parent
    return folder


def _is_inside(target: Path, folder: Path) -> bool:
    """Tell whether the target of a link may be read for a model of a folder.

    It may if it lies in the folder itself, or among the files of the same repository in a cache
    of Hugging Face, whose folder `snapshots` has links to those in `blobs` beside it.
    """
    whole = folder.resolve()
    snapshots = (each for each in (whole, *whole.parents) if each.name == "snapshots")
    roots = [whole, *(each.with_name("blobs") for each in snapshots)]
    return any(target.is_relative_to(root) for root in roots)


def _stated_bytes(tensor: onnx.TensorProto) -> int | None:
    """Return the bytes of a tensor by its shape and type, None if the type is unknown."""
    num_elements = 1
    for size in tensor.dims:
        num_elements *= size
    dtype = read_dtype(tensor.data_type)
    return None if dtype is None else dtype.num_bytes(num_elements)


def _fault(tensor: onnx.TensorProto, folder: Path) -> str | None:
    """Return the fault of the file of a constant, None if none is known here."""
    stated = {entry.key: entry.value for entry in tensor.external_data}
    location = stated.get("location", "")
    if not isinstance(location, str):  # protobuf returns damaged text as bytes
        return "the name of its external file is not UTF-8 text"
    parts = PurePath(location)
    if not parts.parts:
        return "its external data has no location"
    if parts.is_absolute() or ".." in parts.parts:
        return (
            f"location={location!r} is outside the folder of the model; move the file beside the "
            "model and save the model with its name"
        )
    path = folder / parts
    target = path.resolve()
    if target != folder.resolve() / parts and not _is_inside(target, folder):
        return (
            f"external file {location!r} is a link out of the folder of the model; put the file "
            "itself there"
        )
    if not path.exists():
        return (
            f"external file {location!r} is missing; put it into the folder of the model, "
            f"{str(folder)!r}"
        )
    if not path.is_file():
        return f"external file {location!r} is not a regular file"
    try:
        start = int(stated.get("offset") or 0)
        held = path.stat().st_size
        length = int(stated["length"]) if "length" in stated else held - start
    except (OSError, ValueError):
        return None
    if start + length > held:
        return (
            f"bytes {start} to {start + length} exceed external file {location!r} of {held} B: "
            "the file is truncated or of another model; copy it again"
        )
    needed = _stated_bytes(tensor)
    if needed is not None and length != needed:
        return (
            f"external file {location!r} states {max(length, 0)} B, expected {needed} B; copy the "
            "model and the file again"
        )
    return None
