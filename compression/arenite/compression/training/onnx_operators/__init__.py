"""ONNX operators in PyTorch, by type: what a model may have to be trained.

Importing this package imports PyTorch.
"""

from collections.abc import Mapping

from arenite.compression.training.onnx_operators.call import Call, Operator
from arenite.compression.training.onnx_operators.elementwise import ELEMENTWISE
from arenite.compression.training.onnx_operators.layers import LAYERS
from arenite.compression.training.onnx_operators.shapes import SHAPES

OPERATORS: Mapping[str, Operator] = {**ELEMENTWISE, **LAYERS, **SHAPES}
"""Each takes a `Call` and returns its result, or a sequence of results."""

UNSUPPORTED_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "AveragePool": frozenset({"ceil_mode", "dilations"}),
    "ConvTranspose": frozenset({"auto_pad", "output_shape"}),
    "MaxPool": frozenset({"storage_order"}),
}
"""By operator: attributes that it must not have, unless they are neutral."""

__all__ = ["OPERATORS", "UNSUPPORTED_ATTRIBUTES", "Call", "Operator"]
