"""Networks of the zoo, quantised by `onnxruntime.quantization`: random weights and calibration."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from harness.inputs import zoo_file


class RandomCalibration:
    """What `onnxruntime.quantization` reads its inputs from."""

    def __init__(self, model: onnx.ModelProto) -> None:
        generator = np.random.default_rng(0)
        value = model.graph.input[0]
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        self._feeds = iter(
            [{value.name: generator.uniform(-1, 1, shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """Return the next inputs."""
        return next(self._feeds, None)


def quantised_networks(folder: Path, networks: Sequence[str]) -> Iterator[Path]:
    """Yield networks of the zoo as QDQ models, signed and unsigned, and as QLinear ones.

    They are written to a folder, each when it is asked for.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)  # the quantiser's advice, through the root logger
    for name in networks:
        source = zoo_file(name, folder)
        for label, form, activations, per_channel in (
            ("qdq-int8", QuantFormat.QDQ, QuantType.QInt8, True),
            ("qdq-uint8", QuantFormat.QDQ, QuantType.QUInt8, True),
            ("qlinear", QuantFormat.QOperator, QuantType.QUInt8, False),
        ):
            path = folder / f"{name}-{label}.onnx"
            quantize_static(
                source, path, RandomCalibration(onnx.load(source)), quant_format=form,
                activation_type=activations, weight_type=QuantType.QInt8, per_channel=per_channel,
            )  # fmt: skip
            yield path
