"""What compression costs: accuracy on labelled data, or the distance of the outputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import FileError, MissingDependencyError

if TYPE_CHECKING:
    import onnx

Array: TypeAlias = NDArray[Any]

LABELS = "labels"
"""The array of a data set that holds the classes."""

_MADE = "inputs"
"""How errors name samples that come from no file."""


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

    def batches(self, names: Sequence[str], size: int) -> Iterator[dict[str, Array]]:
        """Yield batches of the inputs named; a smaller last batch is dropped."""
        for begin in range(0, self.num_samples - size + 1, size):
            yield {name: self.inputs[name][begin : begin + size] for name in names}


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a model.

    Attributes:
        accuracy: Share of samples classified as labelled; None without labels.
        error: Norm of the difference from the original's outputs, relative to their norm.
        agreement: Share of the samples whose likeliest class is the original's; None where the
            first output is no row of scores.
    """

    accuracy: float | None
    error: float
    agreement: float | None


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
        raise DatasetError(f"is no .npz of arrays: {error}", path=path) from error
    labels = arrays.pop(LABELS, None)
    counts = {len(each) if each.ndim else 0 for each in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise DatasetError("its arrays have no samples, or not as many each", path=path)
    if labels is not None and labels.shape != (*counts,):
        raise DatasetError(
            f"labels have shape {labels.shape}; one a sample was expected", path=path
        )
    return Dataset(path, arrays, labels)


def fed_inputs(model: "onnx.ModelProto") -> "list[onnx.ValueInfoProto]":
    """Return the inputs that the caller feeds: in old files initialisers are inputs too."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def random_dataset(model: "onnx.ModelProto", num_samples: int, seed: int) -> Dataset:
    """Return normal random numbers for each input of a model; free dimensions are 1.

    Raises:
        DatasetError: An input is not of floating point.
    """
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for value in fed_inputs(model):
        if value.type.tensor_type.elem_type != 1:
            raise DatasetError(
                f"input {value.name!r} takes no 32-bit floats; give --evaluate", path=_MADE
            )
        shape = [each.dim_value or 1 for each in value.type.tensor_type.shape.dim]
        batch = shape[:1] or [1]
        inputs[value.name] = random.standard_normal((num_samples * batch[0], *shape[1:])).astype(
            np.float32
        )
    return Dataset(None, inputs, None)


class Judge:
    """Compares models with the original on a data set.

    Args:
        original: The uncompressed model.
        dataset: The samples.

    Attributes:
        dataset: The samples.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        DatasetError: The data set does not fit the model.
    """

    def __init__(self, original: "onnx.ModelProto", dataset: Dataset) -> None:
        self.dataset = dataset
        self._expected = _outputs(original, dataset)

    def judge(self, model: "onnx.ModelProto") -> Quality:
        """Return the quality of a model with other weights."""
        found = _outputs(model, self.dataset)
        squares = sum(float(np.sum(np.square(each, dtype=np.float64))) for each in self._expected)
        apart = sum(
            float(np.sum(np.square(a.astype(np.float64) - b)))
            for a, b in zip(found, self._expected, strict=True)
        )
        error = (apart / squares) ** 0.5 if squares else 0.0
        best, expected = _classes(found[0]), _classes(self._expected[0])
        if best is None:
            return Quality(None, error, None)
        labels = self.dataset.labels
        accuracy = None if labels is None else float(np.mean(best == labels[: len(best)]))
        return Quality(accuracy, error, float(np.mean(best == expected)))


def _classes(outputs: Array) -> Array | None:
    """Return the most probable class of each sample, if an output is one row of scores each."""
    shape = outputs.shape
    if len(shape) < 2 or not 1 < shape[1] == outputs.size // max(shape[0], 1):
        return None
    return np.asarray(np.argmax(outputs.reshape(shape[0], -1), axis=1))


def _outputs(model: "onnx.ModelProto", dataset: Dataset) -> list[Array]:
    """Return each output for all samples."""
    try:
        import onnxruntime
        from onnxruntime.capi.onnxruntime_pybind11_state import (
            InvalidArgument,
            RuntimeException,
        )
    except ModuleNotFoundError as error:
        raise MissingDependencyError("onnxruntime", "onnx", "evaluating a model") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    wanted = session.get_inputs()
    missing = [each.name for each in wanted if each.name not in dataset.inputs]
    if missing:
        raise DatasetError(
            f"there is no array for input {missing[0]!r}", path=dataset.path or _MADE
        )
    batch = next((each.shape[0] for each in wanted if each.shape), 1)
    size = batch if isinstance(batch, int) and batch > 0 else dataset.num_samples
    names = [each.name for each in wanted]
    parts: list[list[Array]] = []
    try:
        for feeds in dataset.batches(names, size):
            parts.append([np.asarray(each) for each in session.run(None, feeds)])
    except (InvalidArgument, RuntimeException) as error:
        raise DatasetError(
            f"does not fit the model: {error}", path=dataset.path or _MADE
        ) from error
    if not parts:
        raise DatasetError(
            f"has fewer samples than the model takes at once, {size}", path=dataset.path or _MADE
        )
    return [
        np.concatenate([np.atleast_1d(each) for each in column])
        for column in zip(*parts, strict=True)
    ]
