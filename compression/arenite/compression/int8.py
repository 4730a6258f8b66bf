"""Quantise weights and activations to int8 by ONNX Runtime: the baseline we compare with."""

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arenite.compression.dataset import Dataset
from arenite.planner import Shapes
from arenite.planner.errors import MissingDependencyError, ModelError

if TYPE_CHECKING:
    import onnx


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
    """Hold back warnings meanwhile: the quantiser logs its advice through the root logger.

    It warns of numbers beyond its range too; what comes of them is evaluated.
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
    """Raise whatever goes wrong in the quantiser as one error."""
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
