"""Quantise weights and activations to int8 by ONNX Runtime: the baseline we compare with."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arenite.compression.evaluate import Dataset, fed_inputs
from arenite.planner.errors import AreniteError, MissingDependencyError

if TYPE_CHECKING:
    import onnx


_PER_CHANNEL_OPSET = 13
"""The first opset with a scale per channel."""


class QuantiserError(AreniteError):
    """ONNX Runtime's quantiser rejects a model.

    Attributes:
        reason: The first line of its message.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: ONNX Runtime's quantiser rejects it: {reason}")
        self.reason = reason


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back warnings meanwhile: the quantiser logs its advice through the root logger."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        root.setLevel(level)


@contextmanager
def _named(model: "onnx.ModelProto") -> Iterator[None]:
    """Raise whatever goes wrong in the quantiser as one error that names the model."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise QuantiserError(model.graph.name, lines[0]) from error


def quantised_by_onnxruntime(model: "onnx.ModelProto", dataset: Dataset) -> "onnx.ModelProto":
    """Return the model quantised to int8 in QDQ form, weights per channel.

    Args:
        model: In floating point.
        dataset: Calibration samples, from which the ranges of activations are taken.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        QuantiserError: Its quantiser rejects the model.
    """
    import onnx
    import onnx.version_converter

    try:
        from onnxruntime.quantization import (
            CalibrationDataReader,
            QuantFormat,
            QuantType,
            quantize_static,
        )
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ModuleNotFoundError as error:
        raise MissingDependencyError("onnxruntime", "onnx", "quantising to int8") from error

    class Samples(CalibrationDataReader):  # type: ignore[misc]  # its package has no types
        def __init__(self) -> None:
            self._remaining = _samples(model, dataset)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._remaining, None)

    with tempfile.TemporaryDirectory(prefix="arenite-int8-") as text, _quiet(), _named(model):
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


def _samples(model: "onnx.ModelProto", dataset: Dataset) -> Iterator[dict[str, NDArray[Any]]]:
    inputs = fed_inputs(model)
    dims = inputs[0].type.tensor_type.shape.dim if inputs else []
    size = (dims[0].dim_value if len(dims) else 1) or 1
    return dataset.batches([each.name for each in inputs], size)
