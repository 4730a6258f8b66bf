"""An ONNX model as a PyTorch module, with the way back for its weights."""

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from arenite.compression.training.pytorch import require_pytorch
from arenite.planner.errors import MissingDependencyError, UnsupportedModelError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class TrainableOnnx:
    """A module made of an ONNX model.

    Attributes:
        module: What is trained. Parameters of no single initialiser are frozen.
        sources: Initialiser of each entry of the module's state, by its name.
        transposed: Entries whose axes are in reverse.
    """

    module: "nn.Module"
    sources: dict[str, str]
    transposed: frozenset[str]

    def by_parameter(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return arrays by initialiser, masks say, as arrays by entry of the module."""
        return {
            name: self._turned(name, arrays[source])
            for name, source in self.sources.items()
            if source in arrays
        }

    def by_initialiser(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return arrays by entry of the module as arrays by initialiser."""
        return {self.sources[name]: self._turned(name, each) for name, each in arrays.items()}

    def weights(self, module: "nn.Module") -> dict[str, NDArray[np.float32]]:
        """Return the weights of a module, a trained copy of ours say, by initialiser."""
        state = module.state_dict()
        return self.by_initialiser({name: state[name].cpu().numpy() for name in self.sources})

    def _turned(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(array.T) if name in self.transposed else array


def trainable(model: onnx.ModelProto, path: str = "model") -> TrainableOnnx:
    """Return the model as a module.

    Args:
        model: Left as it is.
        path: What errors call it.

    Raises:
        MissingDependencyError: PyTorch or the package onnx2torch is absent.
        UnsupportedModelError: It has an operator that cannot be converted.
    """
    marked = copy.deepcopy(model)
    generator = np.random.default_rng(0)
    marks, weights = {}, {}
    for tensor in marked.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or not tensor.dims:
            continue
        weights[tensor.name] = numpy_helper.to_array(tensor).copy()
        marks[tensor.name] = generator.uniform(1, 2, tuple(tensor.dims)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(marks[tensor.name], tensor.name))
    # Marks tell initialisers apart that are equal, biases of zeros say.
    module = _converted(marked, path)
    sources, transposed = _found(module, marks)
    uses = Counter(sources.values())
    parameters = dict(module.named_parameters())
    for name, parameter in parameters.items():
        parameter.requires_grad_(uses[sources.get(name, "")] == 1)
    found = TrainableOnnx(module, sources, transposed)
    import torch

    state = {name: torch.from_numpy(each) for name, each in found.by_parameter(weights).items()}
    module.load_state_dict(state, strict=False)
    lost = [name for name, parameter in parameters.items() if name not in sources]
    if lost:
        raise UnsupportedModelError(lost[0], "is a product of weights, not one of them", path=path)
    return found


def _converted(model: onnx.ModelProto, path: str) -> "nn.Module":
    require_pytorch()
    import torch
    from torch import nn

    try:
        import onnx2torch
    except ImportError as error:
        raise MissingDependencyError("onnx2torch", "train", "training an ONNX model") from error
    try:
        module: nn.Module = onnx2torch.convert(model)
    except NotImplementedError as error:
        raise UnsupportedModelError(
            model.graph.name, f"cannot be trained: {error}", path=path
        ) from error
    for holder in list(module.modules()):
        for name, buffer in list(holder.named_buffers(recurse=False)):
            if not name.startswith("running_") and buffer.dtype == torch.float32 and buffer.ndim:
                delattr(holder, name)
                holder.register_parameter(name, nn.Parameter(buffer.clone()))
    return module


def _found(
    module: "nn.Module", marks: Mapping[str, NDArray[np.float32]]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return which initialiser each entry of the state is, and which are transposed."""
    by_content = {(each.shape, each.tobytes()): name for name, each in marks.items()}
    sources, transposed = {}, set()
    for entry, tensor in module.state_dict().items():
        array = tensor.numpy()
        for turned in (array, array.T):
            source = by_content.get((turned.shape, turned.tobytes()))
            if source is not None:
                sources[entry] = source
                if turned is not array:
                    transposed.add(entry)
                break
    return sources, frozenset(transposed)
