"""The kind of each tensor of a TFLite file, and notes for the user about their sizes."""

from collections.abc import Iterator, Mapping

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.tflite.file import FileSubgraph, FileTensor
from arenite.planner.tensors import DType, Tensor, TensorKind

# By the schema's TensorType; the package on PyPI does not name the newest.
_DTYPES = {
    0: DType.FLOAT32,
    1: DType.FLOAT16,
    2: DType.INT32,
    3: DType.UINT8,
    4: DType.INT64,
    6: DType.BOOL,
    7: DType.INT16,
    8: DType.COMPLEX64,
    9: DType.INT8,
    10: DType.FLOAT64,
    11: DType.COMPLEX128,
    12: DType.UINT64,
    15: DType.UINT32,
    16: DType.UINT16,
    17: DType.INT4,
    18: DType.BFLOAT16,
    19: DType.INT2,
    20: DType.UINT4,
    21: DType.FLOAT8E4M3FN,
    22: DType.FLOAT8E5M2,
}
OPEN_INPUTS = "inputs with free dimensions"
_RESOURCE = 13
_UNSIZED = {5: "string", 14: "variant"}
_MAX_TENSOR_BYTES = 2**63 - 1
_MAX_NAMED = 8


def kinds(subgraph: FileSubgraph, *, is_first: bool) -> dict[int, TensorKind]:
    """Return the kind of each tensor that is in use, by index.

    A tensor that no operator and no caller writes is a constant, wherever its bytes are.

    Args:
        is_first: Whether its inputs and outputs are those of the model.
    """
    written = {index for operator in subgraph.operators for index in operator.outputs}
    read = {index for operator in subgraph.operators for index in operator.inputs}
    inputs, outputs = set(subgraph.inputs), set(subgraph.outputs)
    used = written | read | inputs | outputs
    result: dict[int, TensorKind] = {}
    for index, tensor in enumerate(subgraph.tensors):
        if tensor.variable:
            result[index] = TensorKind.STATE
        elif index not in used:
            continue
        elif index in inputs:
            result[index] = TensorKind.INPUT if is_first else TensorKind.ACTIVATION
        elif tensor.constant or index not in written:
            result[index] = TensorKind.CONSTANT
        elif index in outputs and is_first:
            result[index] = TensorKind.OUTPUT
        else:
            result[index] = TensorKind.ACTIVATION
    return result


def tensor_of(name: str, tensor: FileTensor, kind: TensorKind) -> Tensor:
    """Return the tensor under its name in the program.

    A resource is a handle and constant strings stay in the file: neither takes a byte of
    the arena.

    Raises:
        UnsupportedModelError: Its size depends on its values.
        ModelFormatError: Its type does not exist, or its size is absurd.
    """
    code = tensor.type_code
    if code == _RESOURCE or (code in _UNSIZED and kind is TensorKind.CONSTANT):
        return Tensor(name, DType.UINT8, (0,), kind)
    if code in _UNSIZED:
        raise UnsupportedModelError(name, f"element type {_UNSIZED[code]} has no size in the file")
    if code not in _DTYPES:
        raise ModelFormatError(f"tensor {name!r}: element type {code} is unknown")
    result = Tensor(name, _DTYPES[code], tensor.shape, kind)
    if result.size > _MAX_TENSOR_BYTES:
        raise ModelFormatError(f"tensor {name!r}: the shape {tensor.shape} is too large")
    return result


def notes(tensors: Mapping[str, Tensor], in_file: Mapping[str, FileTensor]) -> Iterator[str]:
    """Yield the notes on sizes that the file leaves open."""
    placed = {
        name: tensor for name, tensor in tensors.items() if tensor.kind is not TensorKind.CONSTANT
    }
    free = [
        name
        for name, tensor in placed.items()
        if tensor.kind is TensorKind.INPUT and in_file[name].has_free_dimension
    ]
    if free:
        shapes = [f"{name!r} {tensors[name].shape}" for name in free]
        yield f"{OPEN_INPUTS}, planned at the shape in the file: {_some(shapes)}"
    handles = [name for name in placed if in_file[name].type_code == _RESOURCE]
    if handles:
        yield (
            "resource variables and tables live outside the arena; handles planned as 0 B: "
            + _some([repr(name) for name in handles])
        )
    unstated = [
        name for name, tensor in placed.items() if not tensor.shape and not in_file[name].has_rank
    ]
    if unstated:
        sizes = [f"{name!r} {tensors[name].size} B" for name in unstated]
        yield (
            "neither shape nor rank in the file (a scalar, or a size known only when it "
            f"runs), planned as one element: {_some(sizes)}"
        )


def _some(names: list[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
