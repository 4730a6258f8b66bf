"""Training steps of the zoo's networks: written as by `arenite train`, read as by `compare`."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.policies import read_program
from arenite.planner import Program
from arenite.training import TrainingRecipe, make_step, read_for_training
from zoo import mobilenet_v2, resnet50, unet
from zoo.batch_norms import with_batch_norms


@dataclass(frozen=True, slots=True)
class Network:
    """A network and how it is trained.

    Attributes:
        make: Makes it, for one image.
        loss: The loss.
        batch_statistics: Whether batch norms by the statistics of the batch follow convolutions.
    """

    make: Callable[[], onnx.ModelProto]
    loss: str = "cross-entropy"
    batch_statistics: bool = False


NETWORKS: Mapping[str, Network] = {
    "mobilenet-v2": Network(mobilenet_v2.network, batch_statistics=True),
    "resnet50": Network(resnet50.network, batch_statistics=True),
    "unet": Network(unet.network, "bce"),
}
"""By name, with batch norms where the published networks have them."""


def training_step(network: Network, batch: int) -> Program:
    """Return the step of SGD of a network with random weights, the states not counted."""
    model = network.make()
    if network.batch_statistics:
        model = with_batch_norms(model)
    recipe = TrainingRecipe(network.loss, batch_statistics=network.batch_statistics)
    with tempfile.TemporaryDirectory() as text:
        path = Path(text) / "network.onnx"
        onnx.save(model, path)
        step = make_step(read_for_training(path, batch), recipe)
        path = Path(text) / "step.onnx"
        onnx.save(step.model, path)
        return read_program(path, Reading())
