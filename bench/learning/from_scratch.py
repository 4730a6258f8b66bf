"""Networks on digits from scratch: our runtime beside PyTorch, on the same batches."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from arenite.compression import with_constants
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.training import make_step, read_for_training, write_step
from arenite.training.step import TrainingRecipe
from bench.digits.networks import FLAT, PLANE, lenet, num_wrong, perceptron, splits
from bench.harness.measuring import in_fresh_process, peak_rss_bytes
from bench.learning.alone import BATCH, train_here
from bench.learning.torch_network import first_weights, loss_of

Arrays: TypeAlias = dict[str, NDArray[Any]]

NETWORKS = {"lenet-300-100": (perceptron, FLAT), "lenet-5": (lenet, PLANE)}
RATE, EPOCHS = 0.05, 12


@dataclass(frozen=True, slots=True)
class Learned:
    """A network trained twice from the same weights, on the same batches.

    Attributes:
        network: Name of the network.
        seed: Of the weights, of the split and of the batches.
        held_out: Number of digits that neither was trained on.
        ours: How many of them our network names wrongly.
        pytorch: How many PyTorch's does.
        arena_bytes: Of our arena, weights and momentum in it.
        state_bytes: Of the weights and the momentum.
        our_rss_bytes: Peak resident memory of our process.
        pytorch_rss_bytes: The same of PyTorch's.
    """

    network: str
    seed: int
    held_out: int
    ours: int
    pytorch: int
    arena_bytes: int
    state_bytes: int
    our_rss_bytes: int
    pytorch_rss_bytes: int


def learned(name: str, seed: int, epochs: int = EPOCHS) -> Learned:
    """Return what a network learns from one seed, here and in PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        return _learned(Path(folder), name, seed, epochs)


def _learned(folder: Path, name: str, seed: int, epochs: int) -> Learned:
    build, shape = NETWORKS[name]
    model = build(seed)
    split = next(splits(seed, shape))
    labels = split.training["labels"]
    order = np.random.default_rng(seed)
    chosen = np.concatenate([
        order.permutation(len(labels))[: len(labels) // BATCH * BATCH] for _ in range(epochs)
    ])  # fmt: skip
    np.savez(folder / "batches.npz", image=split.training["image"][chosen], labels=labels[chosen])
    onnx.save(model, folder / "model.onnx")
    program = read_for_training(folder / "model.onnx", BATCH)
    step = make_step(program, TrainingRecipe("cross-entropy", "momentum", RATE))
    write_step(folder / "step.onnx", step.model)
    build_program(folder / "step.onnx", folder / "step.arena", reading=Reading())
    arena, states, our_rss = in_fresh_process(train_here, str(folder))
    rss = in_fresh_process(train_in_pytorch, str(folder))
    wrong = []
    for trained in ("here.npz", "pytorch.npz"):
        with np.load(folder / trained) as saved:
            wrong.append(num_wrong(with_constants(model, saved), split.held_out))
    ours, theirs = wrong
    count = len(split.held_out["labels"])
    return Learned(name, seed, count, ours, theirs, arena, states, our_rss, rss)


def train_in_pytorch(folder: str) -> int:
    """Train in PyTorch; return the bytes of the process."""
    torch.set_num_threads(1)
    data = np.load(Path(folder) / "batches.npz")
    model = onnx.load(Path(folder) / "model.onnx")
    weights = {
        name: torch.tensor(each).requires_grad_() for name, each in first_weights(model).items()
    }
    optimiser = torch.optim.SGD(weights.values(), RATE, momentum=0.9)
    for start in range(0, len(data["labels"]), BATCH):
        feeds = {name: data[name][start : start + BATCH] for name in ("image", "labels")}
        optimiser.zero_grad()
        loss_of(model, weights, feeds, "cross-entropy").backward()
        optimiser.step()
    arrays: dict[str, Any] = {name: each.detach().numpy() for name, each in weights.items()}
    np.savez(Path(folder) / "pytorch.npz", **arrays)
    return peak_rss_bytes()
