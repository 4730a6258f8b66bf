"""An ONNX model as a PyTorch module, and its trained weights back by initialiser."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from arenite.compression.training.pytorch import require_pytorch
from arenite.planner.errors import UnsupportedModelError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class TrainableOnnx:
    """A module made of an ONNX model.

    Attributes:
        module: Ready to be trained.
        sources: By entry of the module's state, the initialiser that it is.
    """

    module: "nn.Module"
    sources: dict[str, str]

    def by_parameter(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return arrays keyed by initialiser, such as masks, keyed by entry of the module."""
        return {name: arrays[source] for name, source in self.sources.items() if source in arrays}

    def by_initialiser(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return arrays keyed by entry of the module, keyed by initialiser."""
        return {self.sources[name]: each for name, each in arrays.items()}

    def weights(self, module: "nn.Module") -> dict[str, NDArray[np.float32]]:
        """Return a copy of a module's weights, trained ones as a rule, by initialiser."""
        state = module.state_dict()
        return self.by_initialiser(
            {name: state[name].cpu().numpy().copy() for name in self.sources}
        )


def trainable(model: onnx.ModelProto, path: str = "model") -> TrainableOnnx:
    """Return the model as a module.

    Every initialiser of 32-bit floats that a node reads becomes a parameter, once, however many
    nodes read it; scalars stay constant. Running means and variances become buffers.

    Args:
        model: Not modified.
        path: How errors name it.

    Raises:
        MissingDependencyError: PyTorch is absent.
        UnsupportedModelError: It has an operator that cannot be trained.
    """
    require_pytorch()
    from arenite.compression.training.graph_module import GraphModule, why_unsupported

    if unsupported := why_unsupported(model.graph):
        raise UnsupportedModelError(*unsupported, path=path)
    read = {name for node in model.graph.node for name in node.input}
    arrays = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name in read
    }
    statistics = {
        name
        for node in model.graph.node
        if node.op_type == "BatchNormalization"
        for name in node.input[3:]
    }
    trained = [
        name
        for name, array in arrays.items()
        if array.dtype == np.float32 and array.ndim and name not in statistics
    ]
    opset = next((each.version for each in model.opset_import if not each.domain), 1)
    module = GraphModule(model.graph, opset, arrays, trained, sorted(statistics))
    return TrainableOnnx(module, {entry: name for name, entry in module.entries.items()})
