"""Schedules of training, data, and distillation from a teacher."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import nn

Batch: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
Data: TypeAlias = "tuple[torch.Tensor, torch.Tensor] | Iterable[Batch]"
"""Inputs and targets: two tensors, which are shuffled and batched, or an iterable of batches,
such as a `DataLoader`, iterated once per epoch."""

Loss: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
Optimiser: TypeAlias = "Callable[[Sequence[torch.Tensor], float], torch.optim.Optimizer]"
"""Makes an optimiser of parameters and a learning rate."""


def adam(parameters: "Sequence[torch.Tensor]", learning_rate: float) -> "torch.optim.Optimizer":
    """Return Adam with its usual moments."""
    import torch

    return torch.optim.Adam(parameters, lr=learning_rate)


def cross_entropy(outputs: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
    """Return the mean cross entropy of logits and class numbers."""
    from torch.nn import functional

    return functional.cross_entropy(outputs, targets)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        epochs: Passes over the data, at least 1.
        learning_rate: Initial; it decays along half a cosine, epoch by epoch.
        batch_size: For data given as two tensors.
        optimiser: Makes the optimiser.
        loss: Of outputs and targets.
        seed: Of shuffling and of the model's own randomness, such as dropout.
    """

    epochs: int
    learning_rate: float = 1e-3
    batch_size: int = 64
    optimiser: Optimiser = adam
    loss: Loss = cross_entropy
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or not self.learning_rate > 0:
            raise ValueError("epochs, batch_size and learning_rate must be above zero")


@dataclass(frozen=True, slots=True)
class Distillation:
    """Learn from the outputs of a teacher network too, as a rule the dense one.

    Attributes:
        teacher: A classifier; its outputs are logits.
        temperature: Divisor of the logits, above 0.
        weight: The teacher's share of the loss, 0 to 1; the targets have the rest.

    Source: Hinton, Vinyals and Dean, Distilling the Knowledge in a Neural Network,
    arXiv 1503.02531, section 2.
    """

    teacher: "nn.Module"
    temperature: float = 4.0
    weight: float = 0.9

    def __post_init__(self) -> None:
        if not self.temperature > 0 or not 0 <= self.weight <= 1:
            raise ValueError("temperature must be above 0, weight from 0 to 1")

    def loss(self, outputs: "torch.Tensor", taught: "torch.Tensor") -> "torch.Tensor":
        """Return the divergence from the teacher's softened answer, times temperature squared.

        The square keeps its gradients in proportion to those of the targets.
        """
        from torch.nn import functional

        divergence = functional.kl_div(
            functional.log_softmax(outputs / self.temperature, dim=1),
            functional.log_softmax(taught / self.temperature, dim=1),
            reduction="batchmean",
            log_target=True,
        )
        return divergence * self.temperature**2
