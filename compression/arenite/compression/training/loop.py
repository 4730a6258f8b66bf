"""The training loop that all kinds of fine-tuning share."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from arenite.compression.training.schedule import Batch, Data, Distillation, Schedule

if TYPE_CHECKING:
    import torch
    from torch import nn


def train(
    model: "nn.Module",
    parameters: "Sequence[torch.Tensor]",
    data: Data,
    schedule: Schedule,
    distillation: Distillation | None = None,
    *,
    before_step: Callable[[], None] | None = None,
    after_step: Callable[[], None] | None = None,
) -> tuple[float, ...]:
    """Train parameters in place; return the mean loss of each epoch.

    Args:
        model: Trained in place; its training mode is restored afterwards.
        parameters: Those that the optimiser updates.
        data: Inputs and targets.
        schedule: How long and how fast.
        distillation: The teacher, if there is one.
        before_step: Called after the backward pass of each batch.
        after_step: Called after each optimiser step.

    Raises:
        ValueError: There is no data.
    """
    import torch

    was_training = model.training
    device = next(model.parameters()).device
    optimiser = schedule.optimiser(parameters, schedule.learning_rate)
    rates = [group["lr"] for group in optimiser.param_groups]
    losses = []
    with torch.random.fork_rng(devices=()), _still(distillation):
        torch.manual_seed(schedule.seed)
        model.train()
        for epoch in range(schedule.epochs):
            pace = (1 + math.cos(math.pi * epoch / schedule.epochs)) / 2
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * pace
            total, count = 0.0, 0
            for inputs, targets in _batches(data, schedule.batch_size):
                loss = _loss(model, inputs.to(device), targets.to(device), schedule, distillation)
                model.zero_grad()
                loss.backward()
                if before_step:
                    before_step()
                optimiser.step()
                if after_step:
                    after_step()
                total += loss.item() * len(targets)
                count += len(targets)
            if not count:
                raise ValueError("there is no data to train on")
            losses.append(total / count)
        model.train(was_training)
    return tuple(losses)


@contextmanager
def _still(distillation: Distillation | None) -> Iterator[None]:
    """Put the teacher into evaluation mode meanwhile, so without dropout."""
    if distillation is None:
        yield
        return
    was_training = distillation.teacher.training
    distillation.teacher.eval()
    yield
    distillation.teacher.train(was_training)


def _batches(data: Data, batch_size: int) -> Iterator[Batch]:
    import torch

    if not (isinstance(data, tuple) and isinstance(data[0], torch.Tensor)):
        yield from data
        return
    inputs, targets = data
    for chosen in torch.randperm(len(inputs)).split(batch_size):
        yield inputs[chosen], targets[chosen]


def _loss(
    model: "nn.Module",
    inputs: "torch.Tensor",
    targets: "torch.Tensor",
    schedule: Schedule,
    distillation: Distillation | None,
) -> "torch.Tensor":
    import torch

    outputs = model(inputs)
    if distillation is None:
        return schedule.loss(outputs, targets)
    with torch.no_grad():
        taught = distillation.teacher(inputs)
    share = distillation.weight
    loss = share * distillation.loss(outputs, taught)
    return loss + (1 - share) * schedule.loss(outputs, targets) if share < 1 else loss
