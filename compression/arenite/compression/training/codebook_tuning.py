"""Train the shared values of weights; the assignment of weights to values is fixed."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from arenite.compression.training.loop import train
from arenite.compression.training.pytorch import require_pytorch
from arenite.compression.training.schedule import Data, Distillation, Schedule

if TYPE_CHECKING:
    import torch
    from torch import nn


class SharedWeights(Protocol):
    """The result of weight sharing, such as `arenite.compression.share.Shared`."""

    @property
    def codebook(self) -> NDArray[np.float32]:
        """The shared values, in one axis."""

    @property
    def indices(self) -> NDArray[np.uint8]:
        """The entry that each weight takes, in the shape of the weights."""


@dataclass(frozen=True, slots=True)
class TunedCodebooks:
    """A model after training its codebooks.

    Attributes:
        model: A trained copy, its weights restored from the codebooks.
        codebooks: By parameter name.
        losses: Mean loss per epoch.
    """

    model: "nn.Module"
    codebooks: dict[str, NDArray[np.float32]]
    losses: tuple[float, ...]


class _Shared:
    """A parameter of the model that is restored from a codebook."""

    def __init__(self, parameter: "nn.Parameter", shared: SharedWeights) -> None:
        import torch

        self._parameter = parameter
        self._indices = torch.from_numpy(shared.indices.astype(np.int64)).to(parameter.device)
        self.codebook = torch.from_numpy(shared.codebook.copy()).to(parameter)
        self._is_free = (self.codebook != 0).to(parameter)
        self.codebook.grad = torch.zeros_like(self.codebook)

    def restore(self) -> None:
        import torch

        with torch.no_grad():
            self._parameter.copy_(self.codebook[self._indices])

    def gather(self) -> None:
        gradient = self._parameter.grad
        if gradient is None:
            return
        summed = cluster_gradients(gradient, self._indices, len(self.codebook))
        self.codebook.grad = summed * self._is_free

    def round(self) -> None:
        self.codebook = self.codebook.half().to(self.codebook)
        self.restore()


def cluster_gradients(
    gradient: "torch.Tensor", indices: "torch.Tensor", num_values: int
) -> "torch.Tensor":
    """Return the gradient of each shared value: the sum over the weights that share it.

    Cost: O(n) for n weights.
    Source: Han, Mao and Dally, Deep Compression, ICLR 2016, section 3.3.
    """
    import torch

    summed = torch.bincount(
        indices.reshape(-1), gradient.reshape(-1).double(), minlength=num_values
    )
    return summed.to(gradient)


def tune_codebooks(
    model: "nn.Module",
    shared: Mapping[str, SharedWeights],
    data: Data,
    schedule: Schedule,
    distillation: Distillation | None = None,
    *,
    half: bool = False,
) -> TunedCodebooks:
    """Train codebooks, and parameters without one, such as biases.

    A value of 0 stays 0: it is what pruning left out.

    Args:
        model: Not modified.
        shared: By parameter name.
        data: Inputs and targets.
        schedule: How long and how fast.
        distillation: The teacher, if there is one.
        half: Round all trained values to 16-bit floats at the end.

    Raises:
        MissingDependencyError: PyTorch is absent.
        ValueError: Shared weights are of no parameter, or not of its shape.

    Source: Han, Mao and Dally, Deep Compression, ICLR 2016, section 3.3.
    """
    require_pytorch()
    import torch

    tuned = copy.deepcopy(model)
    parameters = dict(tuned.named_parameters())
    for name, values in shared.items():
        if name not in parameters or values.indices.shape != tuple(parameters[name].shape):
            raise ValueError(f"shared weights {name!r} fit no parameter of the model")
    books = {name: _Shared(parameters[name], each) for name, each in shared.items()}
    others = [
        each for name, each in parameters.items() if name not in shared and each.requires_grad
    ]

    def gather() -> None:
        for each in books.values():
            each.gather()

    def restore() -> None:
        for each in books.values():
            each.restore()

    restore()
    losses = train(
        tuned, [*(each.codebook for each in books.values()), *others], data, schedule,
        distillation, before_step=gather, after_step=restore,
    )  # fmt: skip
    if half:
        for book in books.values():
            book.round()
        with torch.no_grad():
            for other in others:
                other.copy_(other.half())
    codebooks = {name: each.codebook.cpu().numpy() for name, each in books.items()}
    return TunedCodebooks(tuned, codebooks, losses)
