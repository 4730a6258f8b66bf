"""The cost of compression: accuracy on labelled data, or the distance of the outputs."""

import logging
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.dataset import (
    NO_DIMS,
    NO_FIXED,
    NO_SHAPES,
    Dataset,
    Dims,
    Fixed,
    fitted_inputs,
)
from arenite.compression.errors import EvaluationError
from arenite.planner import Shapes
from arenite.planner.errors import ModelError, needing
from arenite.planner.quiet_onnxruntime import quiet_options

if TYPE_CHECKING:
    import onnx

Array: TypeAlias = NDArray[Any]
Outputs: TypeAlias = list[Array | None]
"""Outputs of one run; None for an output that is not an array of numbers."""


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a model.

    Attributes:
        accuracy: Share of samples classified as labelled; None without labels.
        error: Norm of the difference from the original's outputs, relative to their norm, where
            these are finite; infinite where the model's are not.
        agreement: Share of the samples whose likeliest class is the original's; None where the
            first output is no row of scores.
    """

    accuracy: float | None
    error: float
    agreement: float | None


class Judge:
    """Compares models with the original on a data set.

    Args:
        original: The uncompressed model.
        dataset: The samples.
        dims: Values of free dimensions by name; by default they are as long as the data are.
        shapes: Whole shapes of inputs by name.
        fixed: Values of fixed inputs by name.

    Attributes:
        dataset: The samples.
        shapes: Of the inputs in one run.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        DatasetError: The data set does not fit the model.
        BindingError: The dimensions do not fit the model.
        EvaluationError: ONNX Runtime refuses the model, or its outputs cannot be compared.
    """

    def __init__(
        self,
        original: "onnx.ModelProto",
        dataset: Dataset,
        dims: Dims = NO_DIMS,
        shapes: Shapes = NO_SHAPES,
        fixed: Fixed = NO_FIXED,
    ) -> None:
        self.dataset = dataset
        self._fixed = fixed
        types = fitted_inputs(original, dataset, dims, shapes, self._fixed)
        self.shapes = {name: taken.shape for name, taken in types.items()}
        self._expected = self._outputs(original)
        self._classes = self._classes_of(self._expected)
        if not any(np.isfinite(each).any() for run in self._expected for each in _arrays(run)):
            raise EvaluationError(
                "it cannot be evaluated: its outputs hold no finite number; check the model and "
                "the inputs"
            )

    def judge(self, model: "onnx.ModelProto") -> Quality:
        """Return the quality of a model with other weights.

        Raises:
            EvaluationError: ONNX Runtime refuses the model.
        """
        found = self._outputs(model)
        squares = apart = 0.0
        for found_run, expected_run in zip(found, self._expected, strict=True):
            for other, expected in zip(found_run, expected_run, strict=True):
                if expected is not None:
                    energy, distance = _compared(other, expected)
                    squares, apart = squares + energy, apart + distance
        error = (apart / squares) ** 0.5 if squares else (np.inf if apart else 0.0)
        best = self._classes_of(found)
        if best is None or self._classes is None:
            return Quality(None, error, None)
        labels = self.dataset.labels
        accuracy = None if labels is None else float(np.mean(best == labels[: len(best)]))
        return Quality(accuracy, error, float(np.mean(best == self._classes)))

    def _outputs(self, model: "onnx.ModelProto") -> list[Outputs]:
        options = quiet_options("evaluating a model", num_threads=0)
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as native

        # RuntimeError and its like are what the bindings make of C++ exceptions, std::bad_alloc
        # among them.
        refusals = (
            native.EPFail, native.Fail, native.InvalidArgument, native.InvalidGraph,
            native.InvalidProtobuf, native.NotImplemented, native.RuntimeException,
            IndexError, MemoryError, RuntimeError, TypeError, ValueError,
        )  # fmt: skip
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return [
                [_numbers(each) for each in session.run(None, {**feeds, **self._fixed})]
                for feeds in self.dataset.batches(self.shapes)
            ]
        except refusals as error:
            raise EvaluationError(f"rejected by ONNX Runtime: {_reason(error)}") from error

    def _classes_of(self, runs: Sequence[Outputs]) -> Array | None:
        """Return the most probable class of each sample, if there is a row of scores for each."""
        size = next((shape[0] for shape in self.shapes.values() if shape), 1)
        classes: list[Array] = []
        for first, *_ in runs:
            if first is None or first.ndim < 2 or len(first) != size:
                return None
            if not 1 < first.shape[1] == first.size // size:
                return None
            classes.append(np.argmax(first.reshape(size, -1), axis=1))
        return np.concatenate(classes) if classes else None


def _reason(error: BaseException) -> str:
    """Return the message of ONNX Runtime in one line, without its prefix."""
    text = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)


def _numbers(output: object) -> Array | None:
    """Return an output, None if it is no array of numbers but, say, a sequence or texts."""
    is_numeric = isinstance(output, np.ndarray) and output.dtype.kind in "biuf"
    return np.asarray(output) if is_numeric else None


def _arrays(outputs: Outputs) -> list[Array]:
    return [each for each in outputs if each is not None]


def _compared(found: Array | None, expected: Array) -> tuple[float, float]:
    """Return the energy of the original's output and of the difference, both where it is finite.

    How many rows a detector finds depends on its weights: an output of another shape is wholly
    another.
    """
    finite = np.isfinite(expected)
    wide = expected[finite].astype(np.float64)
    with np.errstate(all="ignore"):
        energy = float(wide @ wide)
        if found is None or found.shape != expected.shape:
            return energy, energy
        difference = found[finite].astype(np.float64) - wide
        distance = float(difference @ difference)
    return energy, distance if np.isfinite(distance) else np.inf


_PER_CHANNEL_OPSET = 13
"""The first opset with a scale per channel."""


class QuantiserError(ModelError):
    """ONNX Runtime's quantiser rejects a model.

    Args:
        reason: The first line of its message.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"ONNX Runtime's quantiser rejects it: {reason}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back warnings in the block: the quantiser logs its advice through the root logger.

    It warns of numbers beyond its range too; the evaluation shows their effect.
    """
    root = logging.getLogger()
    level = root.level
    root.setLevel(max(level, logging.ERROR))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.setLevel(level)


@contextmanager
def _as_one_error() -> Iterator[None]:
    """Raise every error of the quantiser as a `QuantiserError`."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise QuantiserError(lines[0]) from error


def quantised_by_onnxruntime(
    model: "onnx.ModelProto", dataset: Dataset, shapes: Shapes
) -> "onnx.ModelProto":
    """Return the model quantised to int8 in QDQ form, weights per channel.

    Args:
        model: In floating point.
        dataset: Calibration samples, from which the ranges of activations are taken.
        shapes: Of the inputs in one run.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        QuantiserError: Its quantiser rejects the model.
    """
    import onnx
    import onnx.version_converter

    with needing("onnxruntime", "onnx", "quantising to int8"):
        from onnxruntime.quantization import (
            CalibrationDataReader,
            QuantFormat,
            QuantType,
            quantize_static,
        )
        from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):  # type: ignore[misc]  # its package has no types
        def __init__(self) -> None:
            self._remaining = dataset.batches(shapes)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._remaining, None)

    with tempfile.TemporaryDirectory(prefix="arenite-int8-") as text, _quiet(), _as_one_error():
        opsets = {opset.domain: opset.version for opset in model.opset_import}
        if opsets.get("", _PER_CHANNEL_OPSET) < _PER_CHANNEL_OPSET:
            model = onnx.version_converter.convert_version(model, _PER_CHANNEL_OPSET)
        source, prepared, made = (Path(text) / f"{name}.onnx" for name in "spm")
        onnx.save(model, source)
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared, made, Samples(), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return onnx.load(made)
