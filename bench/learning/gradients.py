"""Whole gradients of the zoo's networks, beside 64 bits."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch
from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.runtime import Session
from arenite.training import TrainingStep, make_step, read_for_training, write_step
from arenite.training.step import TrainingRecipe
from bench.learning.torch_network import gradients
from bench.zoo.classic import resnet50, unet, vgg16
from bench.zoo.mobilenets import mobilenet_v2

Arrays: TypeAlias = dict[str, NDArray[Any]]

_CONTRAST = np.float32(0.05)
"""Of the images: so low that no probability of a network with random weights is 0 or 1."""
MOST_TIMES = 3.0
"""How many times PyTorch's error ours may be."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """The error of a whole gradient, relative to its length.

    Attributes:
        network: Name of the network.
        batch: Images.
        parameters: Number of weights.
        ours: Error of our step in ONNX Runtime, in 32 bits.
        native: The same in our runtime.
        pytorch: Error of PyTorch in 32 bits.
    """

    network: str
    batch: int
    parameters: int
    ours: float
    native: float
    pytorch: float

    @property
    def holds(self) -> bool:
        """Whether ours errs no more than it may, in either runtime."""
        return max(self.ours, self.native) <= MOST_TIMES * self.pytorch


NETWORKS: Mapping[str, tuple[Callable[[], onnx.ModelProto], str, int]] = {
    "mobilenet-v2, 64 px": (lambda: mobilenet_v2(64, 10), "cross-entropy", 1),
    "resnet50, 64 px": (lambda: resnet50(64, 10), "cross-entropy", 1),
    "vgg16, 32 px": (lambda: vgg16(32, 10), "cross-entropy", 1),
    "unet, 32 px": (lambda: unet(32), "bce", 1),
    "unet, 32 px, batch of 8": (lambda: unet(32), "bce", 8),
}
"""Networks by name, with their loss and batch."""


def measured(name: str) -> Gradients:
    """Return the errors for a network."""
    build, loss, batch = NETWORKS[name]
    model = build()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        step = make_step(read_for_training(path, batch), TrainingRecipe(loss, "momentum", 1.0))
        feeds = _feeds(step)
        native = _by_session(step, Path(folder), feeds)
    exact, theirs = (
        gradients(model, feeds, loss, dtype=dtype, batch_statistics=False)[1]
        for dtype in (torch.float64, torch.float32)
    )
    count = sum(each.size for each in exact.values())
    ours = _by_step(step, feeds)
    return Gradients(
        name, batch, count, _distance(ours, exact), _distance(native, exact),
        _distance(theirs, exact),
    )  # fmt: skip


def _feeds(step: TrainingStep) -> Arrays:
    random = np.random.default_rng(0)
    return {
        key: _CONTRAST * random.standard_normal(each.shape, np.float32)
        if key == "image"
        else random.integers(0, 2, each.shape).astype(each.dtype.label)
        for key, each in step.inputs.items()
    }


def _by_session(step: TrainingStep, folder: Path, feeds: Arrays) -> Arrays:
    """Return the gradients as our runtime makes them."""
    write_step(folder / "step.onnx", step.model)
    build_program(folder / "step.onnx", folder / "step.arena", reading=Reading())
    with Session(folder / "step.arena") as session:
        session.run(feeds)
        return {name: session.states[f"{name}/momentum"] for name in step.trained}


def _by_step(step: TrainingStep, feeds: Arrays) -> Arrays:
    """Return the gradients: the momentum after one run."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(step.model.SerializeToString(), options)
    zeros = {
        name: np.zeros(each.shape, np.float32)
        for name, each in step.state_types.items()
        if name.endswith("/momentum")
    }
    names = [step.states[f"{name}/momentum"] for name in step.trained]
    return dict(zip(step.trained, session.run(names, feeds | zeros), strict=True))


def _distance(found: Arrays, exact: Arrays) -> float:
    error = sum(float(((found[name] - exact[name]) ** 2).sum()) for name in exact)
    return float((error / sum(float((each**2).sum()) for each in exact.values())) ** 0.5)
