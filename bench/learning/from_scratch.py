"""Networks on digits from scratch: our runtime beside PyTorch, on the same batches."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch.nn import functional

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.training.prepare import read_for_training
from arenite.training.step import Recipe, make_step
from arenite.training.writing import write_step
from digits.data import num_wrong, splits
from digits.networks import lenet, perceptron, to_onnx, weights_of
from harness.processes import in_fresh_process, peak_rss_bytes
from learning.here import BATCH, train_here

Arrays: TypeAlias = dict[str, NDArray[Any]]

NETWORKS = {"lenet-300-100": perceptron, "lenet-5": lenet}
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
    torch.manual_seed(seed)
    module = NETWORKS[name]()
    split = next(splits(seed))
    images, labels = (each.numpy() for each in split.training)
    order = np.random.default_rng(seed)
    chosen = np.concatenate([
        order.permutation(len(labels))[: len(labels) // BATCH * BATCH] for _ in range(epochs)
    ])  # fmt: skip
    model = to_onnx(module, weights_of(module), "digits")
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
    np.savez(folder / "batches.npz", image=images[chosen].reshape(-1, *shape[1:]),
             labels=labels[chosen])  # fmt: skip
    onnx.save(model, folder / "model.onnx")
    torch.save(module.state_dict(), folder / "first.pt")
    program = read_for_training(folder / "model.onnx", BATCH)
    step = make_step(program, Recipe("cross-entropy", "momentum", RATE))
    write_step(folder / "step.onnx", step.model)
    build_program(folder / "step.onnx", folder / "step.arena", reading=Reading())
    arena, states, our_rss = in_fresh_process(train_here, str(folder))
    rss = in_fresh_process(train_in_pytorch, str(folder), name)
    wrong = []
    for trained in ("here.npz", "pytorch.npz"):
        with np.load(folder / trained) as saved:
            state = {key: torch.from_numpy(saved[key]) for key in module.state_dict()}
        module.load_state_dict(state)
        wrong.append(num_wrong(module, split.held_out))
    ours, theirs = wrong
    count = len(split.held_out[1])
    return Learned(name, seed, count, ours, theirs, arena, states, our_rss, rss)


def train_in_pytorch(folder: str, name: str) -> int:
    """Train in PyTorch; return the bytes of the process."""
    torch.set_num_threads(1)
    data = np.load(Path(folder) / "batches.npz")
    images = torch.from_numpy(data["image"]).flatten(1)
    labels = torch.from_numpy(data["labels"])
    module = NETWORKS[name]()
    module.load_state_dict(torch.load(Path(folder) / "first.pt"))
    optimiser = torch.optim.SGD(module.parameters(), RATE, momentum=0.9)
    for start in range(0, len(labels), BATCH):
        optimiser.zero_grad()
        found = module(images[start : start + BATCH])
        functional.cross_entropy(found, labels[start : start + BATCH]).backward()
        optimiser.step()
    arrays: dict[str, Any] = dict(weights_of(module))
    np.savez(Path(folder) / "pytorch.npz", **arrays)
    return peak_rss_bytes()
