"""Weights and activations of 8 bits, by ONNX Runtime's quantiser: what others do, to compare."""

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


_OPSET_BY_CHANNEL = 13
"""The first with scales by channel."""


class QuantiserError(AreniteError):
    """ONNX Runtime's quantiser does not take a model.

    Attributes:
        reason: What it says.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: ONNX Runtime's quantiser does not take it: {reason}")
        self.reason = reason


@contextmanager
def _named(model: "onnx.ModelProto") -> Iterator[None]:
    """Give a name to whatever goes wrong in the quantiser, which raises what it likes."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise QuantiserError(model.graph.name, lines[0]) from error


def quantised_by_onnxruntime(model: "onnx.ModelProto", dataset: Dataset) -> "onnx.ModelProto":
    """Return the model in integers of 8 bits, QDQ, weights by channel.

    Args:
        model: In floating point.
        dataset: Samples that tell the ranges of activations.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        QuantiserError: Its quantiser does not take the model.
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
            self._left = _samples(model, dataset)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._left, None)

    logging.getLogger().setLevel(max(logging.getLogger().level, logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="arenite-int8-") as text, _named(model):
        opsets = {opset.domain: opset.version for opset in model.opset_import}
        if opsets.get("", _OPSET_BY_CHANNEL) < _OPSET_BY_CHANNEL:
            model = onnx.version_converter.convert_version(model, _OPSET_BY_CHANNEL)
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
