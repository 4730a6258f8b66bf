"""The samples that a model is evaluated on, read from a file or made up."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Shapes
from arenite.planner.errors import FileError, UnboundDimensionError

if TYPE_CHECKING:
    import onnx

    from arenite.planner.importers.onnx import TensorType

Array: TypeAlias = NDArray[Any]
Dims: TypeAlias = Mapping[str, int]

LABELS = "labels"
"""The array of a data set that holds the classes."""

NO_DIMS: Dims = MappingProxyType({})
NO_SHAPES: Shapes = MappingProxyType({})
Fixed: TypeAlias = Mapping[str, Array]
"""Values of fixed inputs by name; they need no samples."""
NO_FIXED: Fixed = MappingProxyType({})

_MOST_ELEMENTS = 1 << 29
"""Of made-up samples, so that a large dimension is an error and not an exhausted machine."""


class DatasetError(FileError):
    """A file cannot serve as a data set for the model."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples, along the first axis of each array.

    Attributes:
        path: The file; None for generated samples.
        inputs: By name of the graph input.
        labels: Integers, one per sample; None if unknown.
    """

    path: Path | None
    inputs: Mapping[str, Array]
    labels: Array | None

    @property
    def num_samples(self) -> int:
        """Number of samples."""
        return min((len(each) for each in self.inputs.values()), default=0)

    def batches(self, shapes: Shapes) -> Iterator[dict[str, Array]]:
        """Yield the inputs of each run; samples that do not fill a run are dropped.

        Args:
            shapes: Of each input in one run. A scalar takes one element.
        """
        counts = {name: shape[0] if shape else 1 for name, shape in shapes.items()}
        num_runs = min(
            (len(self.inputs[name]) // count for name, count in counts.items() if count), default=0
        )
        for run in range(num_runs):
            yield {
                name: self.inputs[name][run * count : (run + 1) * count].reshape(shapes[name])
                for name, count in counts.items()
            }


def read_dataset(path: Path) -> Dataset:
    """Return the samples of a `.npz`: inputs by name, and `labels` if they are known.

    Raises:
        DatasetError: The file cannot be read.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}", path=path) from error
    except Exception as error:  # damaged archives raise whatever their parts do
        text = " ".join(str(error).split())
        raise DatasetError(f"is not an .npz file of arrays: {text}", path=path) from error
    labels = arrays.pop(LABELS, None)
    counts = {len(each) if each.ndim else 0 for each in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise DatasetError("arrays are empty or differ in their number of samples", path=path)
    if labels is not None and labels.shape != (*counts,):
        raise DatasetError(
            f"labels have shape {labels.shape}, not one label per sample", path=path
        )
    if labels is not None and labels.dtype.kind not in "iu":
        raise DatasetError(f"labels are of type {labels.dtype}, not integers", path=path)
    return Dataset(path, arrays, labels)


def fed_inputs(model: "onnx.ModelProto") -> "list[onnx.ValueInfoProto]":
    """Return the inputs that the caller feeds: in old files initialisers are inputs too."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def fitted_inputs(
    model: "onnx.ModelProto",
    dataset: Dataset,
    dims: Dims = NO_DIMS,
    shapes: Shapes = NO_SHAPES,
    fixed: Fixed = NO_FIXED,
) -> "dict[str, TensorType]":
    """Return the type of each input in one run; free dimensions are as long as the data are.

    Args:
        dataset: The samples.
        dims: Values of free dimensions by name.
        shapes: Whole shapes of inputs by name.
        fixed: Inputs that are none of the result's.

    Raises:
        DatasetError: The data set does not fit the model, or not these dimensions.
        BindingError: The model has no such dimension or input, or two that contradict each other.
        UnsupportedModelError: An input is no tensor.
    """
    from arenite.planner.importers.onnx import bind, numpy_dtype

    wanted: dict[str, tuple[int, ...]] = {}
    for value in _open_inputs(model, fixed):
        array = dataset.inputs.get(value.name)
        if array is None:
            raise DatasetError(f"there is no array for input {value.name!r}", path=dataset.path)
        if value.name not in shapes:
            wanted[value.name] = _shape_by_data(value, array, dims, dataset.path)
    binding = bind(model.graph, dims, {**_shapes_of(fixed), **wanted, **shapes})
    bound = dict(binding.without(fixed).inputs)
    for name, taken in bound.items():
        array = dataset.inputs[name]
        if array.dtype != numpy_dtype(taken.dtype):
            raise DatasetError(
                f"the array {name!r} is of type {array.dtype}; the model takes "
                f"{numpy_dtype(taken.dtype)}",
                path=dataset.path,
            )
        if array.shape[1:] != taken.shape[1:]:
            raise DatasetError(
                f"a sample of {name!r} is {_text(array.shape[1:])}; the model takes "
                f"{_text(taken.shape[1:])}",
                path=dataset.path,
            )
        if taken.shape and len(array) < taken.shape[0]:
            raise DatasetError(
                f"has fewer samples of {name!r}, {len(array)}, than the model takes at once, "
                f"{taken.shape[0]}",
                path=dataset.path,
            )
    return bound


def _open_inputs(model: "onnx.ModelProto", fixed: Fixed) -> "list[onnx.ValueInfoProto]":
    return [value for value in fed_inputs(model) if value.name not in fixed]


def _shapes_of(fixed: Fixed) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in fixed.items()}


def _shape_by_data(
    value: "onnx.ValueInfoProto", array: Array, dims: Dims, path: Path | None
) -> tuple[int, ...]:
    """Return the shape of an input in one run, all samples at once where the model lets it."""
    declared = value.type.tensor_type.shape.dim
    if not value.type.tensor_type.HasField("shape"):
        return array.shape
    if array.ndim != max(len(declared), 1):
        raise DatasetError(
            f"the array {value.name!r} has {array.ndim} axes; the model takes "
            f"{max(len(declared), 1)}",
            path=path,
        )
    return tuple(
        each.dim_value
        if each.HasField("dim_value") and each.dim_value >= 0
        else dims.get(_name(value, axis), array.shape[axis])
        for axis, each in enumerate(declared)
    )


def random_dataset(
    model: "onnx.ModelProto",
    num_samples: int,
    seed: int,
    dims: Dims = NO_DIMS,
    shapes: Shapes = NO_SHAPES,
    fixed: Fixed = NO_FIXED,
) -> Dataset:
    """Return normal random numbers for each input of a model.

    A free first dimension counts samples; other dimensions are never made up, because figures
    on a size that nobody uses mislead.

    Args:
        model: The model.
        num_samples: How many runs, or how long a free first dimension is.
        seed: Of the numbers.
        dims: Values of free dimensions by name.
        shapes: Whole shapes of inputs by name.
        fixed: Inputs that need no samples.

    Raises:
        DatasetError: An input is not of floating point, has no elements or billions.
        UnboundDimensionError: A free dimension is left.
        BindingError: The model has no such dimension or input, or two that contradict each other.
        UnsupportedModelError: An input is no tensor.
    """
    from arenite.planner.importers.onnx import bind

    values = _open_inputs(model, fixed)
    for value in values:
        if value.type.tensor_type.elem_type != 1:
            raise DatasetError(f"input {value.name!r} is not float32")
    stated = {
        _name(value, axis)
        for value in values
        for axis in range(len(value.type.tensor_type.shape.dim))
        if value.name in shapes
    }
    batch = {
        _name(value, 0): num_samples
        for value in values
        if _is_free_first(value) and _name(value, 0) not in stated | set(dims)
    }
    try:
        bound = bind(model.graph, {**dims, **batch}, {**_shapes_of(fixed), **shapes})
    except UnboundDimensionError as error:
        raise UnboundDimensionError(error.dimensions, _sizes_wanted(error.dimensions)) from error
    num_runs = 1 if batch else num_samples
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name, taken in bound.without(fixed).inputs.items():
        rows, *rest = taken.shape or (1,)
        if not 0 < math.prod((num_runs, rows, *rest)) <= _MOST_ELEMENTS:
            raise DatasetError(f"input {name!r} takes {math.prod((rows, *rest)):,} numbers")
        inputs[name] = random.standard_normal((num_runs * rows, *rest)).astype(np.float32)
    return Dataset(None, inputs, None)


def _is_free_first(value: "onnx.ValueInfoProto") -> bool:
    declared = value.type.tensor_type.shape.dim
    return len(declared) > 0 and not (
        declared[0].HasField("dim_value") and declared[0].dim_value >= 0
    )


def _name(value: "onnx.ValueInfoProto", axis: int) -> str:
    """Return the name of a free dimension."""
    from arenite.planner.importers.onnx import stated_name

    return stated_name(value.type.tensor_type.shape.dim[axis]) or f"{value.name}:{axis}"


def _sizes_wanted(dimensions: tuple[str, ...]) -> str:
    options = [
        f"--shape {name[:-2]}=1x3x224x224" if name.endswith(":?") else f"--dim {name}=224"
        for name in dimensions
    ]
    return f"give the sizes to evaluate on, such as {' '.join(options)}, or --evaluate DATASET.npz"


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one number"
