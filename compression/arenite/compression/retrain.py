"""Retraining of pruned weights and of codebooks, by training steps.

A mask sets the gradient of pruned weights to 0. Shared weights are gathered from their codebook,
so that the gradient of a value is the sum over its weights. Both are part of the step, a standard
ONNX model that any engine runs.
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.compression.constants import array_of, constants_of, with_constants
from arenite.compression.pruning import mask_by_density, mask_by_deviation
from arenite.training import (
    Codebooks,
    DistillationLoss,
    Masks,
    StepEngine,
    TrainingRecipe,
    codebook_name,
    fitted_feeds,
    make_step,
    program_for_training,
    stock_engine,
)

Array: TypeAlias = NDArray[Any]
Weights: TypeAlias = NDArray[np.float32]
Feeds: TypeAlias = Mapping[str, Array]
"""Arrays by input of the step: the model's inputs, and `labels` (cross-entropy) or `targets`."""

Data: TypeAlias = Feeds | Iterable[Feeds]
"""All samples along the first axis of each array, to be shuffled and batched; or batches of one
size, iterated once per epoch."""

LoadStep: TypeAlias = Callable[[Path], AbstractContextManager[StepEngine]]
"""Opens the ONNX file of a training step in an engine."""

Masking: TypeAlias = Callable[[Mapping[str, Weights]], dict[str, NDArray[np.bool_]]]
"""Computes the masks of a round from the current weights, by name."""


@dataclass(frozen=True, slots=True)
class TrainingSchedule:
    """Length and rate of training.

    Attributes:
        epochs: Passes over the data, at least 1.
        learning_rate: Initial rate; it decays along half a cosine, epoch by epoch.
        batch_size: Samples per step.
        seed: Seed of the shuffling.
        recipe: Loss, optimiser and batch norms of the step; its rate is not read.
    """

    epochs: int
    learning_rate: float = 1e-3
    batch_size: int = 64
    seed: int = 0
    recipe: TrainingRecipe = field(
        default_factory=lambda: TrainingRecipe("cross-entropy", "adam", batch_statistics=True)
    )

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or not self.learning_rate > 0:
            raise ValueError("epochs, batch_size and learning_rate must be above zero")


@dataclass(frozen=True, slots=True)
class Distillation:
    """Learning from the scores of a teacher network, usually the dense one.

    Attributes:
        teacher: Computes the teacher's scores of a batch from the inputs of the model.
        loss: Temperature, and share of the teacher in the loss.
    """

    teacher: Callable[[Feeds], Array]
    loss: DistillationLoss = field(default_factory=DistillationLoss)


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A model after training.

    Attributes:
        model: A trained copy.
        losses: Mean loss per epoch.
    """

    model: onnx.ModelProto
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PrunedModel(FineTuned):
    """A model after gradual pruning; `losses` has the epochs of all rounds.

    Attributes:
        masks: Masks of the last round by name, True for retained weights.
    """

    masks: Masks


@dataclass(frozen=True, slots=True)
class TunedCodebooks(FineTuned):
    """A model after training its codebooks, its weights restored from them.

    Attributes:
        codebooks: Codebooks by name of the weights.
    """

    codebooks: dict[str, Weights]


def fine_tune(
    model: onnx.ModelProto,
    masks: Masks,
    data: Data,
    schedule: TrainingSchedule,
    distillation: Distillation | None = None,
    *,
    load: LoadStep = stock_engine,
) -> FineTuned:
    """Prune by masks and train the remaining weights.

    Args:
        model: Not modified.
        masks: By name of the weights.
        data: Inputs and targets.
        schedule: Length and rate of training.
        distillation: The teacher, if there is one.
        load: Engine of the step; ONNX Runtime by default.

    Raises:
        MaskError: A mask has no trained weights, or not their shape.
        TrainingError: The model cannot be trained.
        StepInputError: Data do not fit the model.
        ValueError: There are no data.

    Source: Han, Pool, Tran and Dally, Learning both Weights and Connections, NIPS 2015,
    section 3.
    """
    weights = weights_of(model)
    pruned = {
        name: weights[name] * mask
        for name, mask in masks.items()
        if name in weights and weights[name].shape == mask.shape
    }
    states, losses = _train(
        with_constants(model, pruned), masks, data, schedule, distillation, load
    )
    return FineTuned(with_constants(model, states), losses)


def falling_densities(densities: Mapping[str, float], num_rounds: int) -> list[Masking]:
    """Return rounds that reach densities by name, each by the same factor."""
    return _rounds(
        num_rounds, densities, lambda weights, last, part: mask_by_density(weights, last**part)
    )


def rising_deviations(multiples: Mapping[str, float], num_rounds: int) -> list[Masking]:
    """Return rounds that reach thresholds by name, in equal steps.

    Args:
        multiples: Thresholds in standard deviations of the weights.
        num_rounds: At least 1.
    """
    return _rounds(
        num_rounds, multiples, lambda weights, last, part: mask_by_deviation(weights, last * part)
    )


def _rounds(
    num_rounds: int,
    last: Mapping[str, float],
    mask: Callable[[Weights, float, float], NDArray[np.bool_]],
) -> list[Masking]:
    """Return rounds by a mask of weights, the number of the last round and the part reached."""

    def masking(part: float) -> Masking:
        return lambda weights: {
            name: mask(weights[name], number, part) for name, number in last.items()
        }

    return [masking(number / num_rounds) for number in range(1, num_rounds + 1)]


def prune_gradually(
    model: onnx.ModelProto,
    rounds: Sequence[Masking],
    data: Data,
    schedule: TrainingSchedule,
    distillation: Distillation | None = None,
    *,
    load: LoadStep = stock_engine,
) -> PrunedModel:
    """Prune and train, round by round; pruned weights stay pruned.

    Args:
        model: Not modified.
        rounds: At least one, from `falling_densities` or `rising_deviations`.
        data: Inputs and targets.
        schedule: Length and rate of each round.
        distillation: The teacher, if there is one.
        load: Engine of the step; ONNX Runtime by default.

    Raises:
        MaskError: A mask does not fit the model.
        TrainingError: The model cannot be trained.
        StepInputError: Data do not fit the model.
        ValueError: There are no rounds or no data.

    Source: Han, Pool, Tran and Dally, Learning both Weights and Connections, NIPS 2015,
    section 3.4.
    """
    if not rounds:
        raise ValueError("gradual pruning needs at least one round")
    tuned = FineTuned(model, ())
    masks: dict[str, NDArray[np.bool_]] = {}
    losses: tuple[float, ...] = ()
    for masking in rounds:
        found = masking(weights_of(tuned.model))
        masks = {name: mask & masks.get(name, np.True_) for name, mask in found.items()}
        tuned = fine_tune(tuned.model, masks, data, schedule, distillation, load=load)
        losses += tuned.losses
    return PrunedModel(tuned.model, losses, masks)


def tune_codebooks(
    model: onnx.ModelProto,
    shared: Codebooks,
    data: Data,
    schedule: TrainingSchedule,
    distillation: Distillation | None = None,
    *,
    half: bool = False,
    load: LoadStep = stock_engine,
) -> TunedCodebooks:
    """Train codebooks, and weights without one, such as biases.

    The assignment of weights to values is fixed, and a value of 0 stays 0: it stands for pruned
    weights.

    Args:
        model: Not modified.
        shared: Codebooks and indices by name of the weights.
        data: Inputs and targets.
        schedule: Length and rate of training.
        distillation: The teacher, if there is one.
        half: Round all trained values to 16-bit floats at the end.
        load: Engine of the step; ONNX Runtime by default.

    Raises:
        MaskError: Shared weights fit no trained weights.
        TrainingError: The model cannot be trained.
        StepInputError: Data do not fit the model.
        ValueError: There are no data.

    Source: Han, Mao and Dally, Deep Compression, ICLR 2016, section 3.3.
    """
    free = {codebook_name(name): each.codebook != 0 for name, each in shared.items()}
    states, losses = _train(model, free, data, schedule, distillation, load, shared)
    if half:
        states = {name: _halved(each) for name, each in states.items()}
    codebooks = {name: states[codebook_name(name)] for name in shared}
    restored = {name: codebooks[name][each.indices] for name, each in shared.items()}
    return TunedCodebooks(with_constants(model, states | restored), losses, codebooks)


def weights_of(model: onnx.ModelProto) -> dict[str, Weights]:
    """Return the 32-bit floating-point constants of a model by name, scalars left out."""
    return {
        name: array_of(name, tensor)
        for name, tensor in constants_of(model.graph).items()
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    }


def _train(
    model: onnx.ModelProto,
    masks: Masks,
    data: Data,
    schedule: TrainingSchedule,
    distillation: Distillation | None,
    load: LoadStep,
    shared: Codebooks = MappingProxyType({}),
) -> tuple[dict[str, Array], tuple[float, ...]]:
    """Return the final states of the step, and the mean loss per epoch."""
    recipe = replace(schedule.recipe, rate=None)
    if distillation is not None:
        recipe = replace(recipe, loss=distillation.loss)
    size = schedule.batch_size
    if isinstance(data, Mapping):
        size = min(size, *map(len, data.values())) if data else 0
    if not size:
        raise ValueError("there are no data to train on")
    step = make_step(program_for_training(with_constants(model, {}), size), recipe, masks, shared)
    random = np.random.default_rng(schedule.seed)
    losses: list[float] = []
    with tempfile.TemporaryDirectory(prefix="arenite-retrain-") as folder:
        path = Path(folder) / "step.onnx"
        path.write_bytes(step.model.SerializeToString())
        with load(path) as engine:
            for epoch in range(schedule.epochs):
                pace = (1 + math.cos(math.pi * epoch / schedule.epochs)) / 2
                rate = {"rate": np.array(schedule.learning_rate * pace)}
                found = []
                for batch in _batches(data, size, random):
                    feeds = {**batch, **rate}
                    if distillation is not None:
                        feeds["taught"] = distillation.teacher(batch)
                    made = engine.run(fitted_feeds(feeds, engine.inputs))
                    found.append(float(made[step.loss].item()))
                if not found:
                    raise ValueError("there are no data to train on")
                losses.append(math.fsum(found) / len(found))
            states = {name: np.array(engine.states[name]) for name in step.states}
    return states, tuple(losses)


def _batches(data: Data, size: int, random: np.random.Generator) -> Iterator[Feeds]:
    """Yield the batches of an epoch; the last is filled up with the first samples."""
    if not isinstance(data, Mapping):
        yield from data
        return
    order = random.permutation(len(next(iter(data.values()))))
    for chosen in np.resize(order, (-(-len(order) // size), size)):
        yield {name: array[chosen] for name, array in data.items()}


def _halved(array: Array) -> Array:
    return array.astype(np.float16).astype(array.dtype)
