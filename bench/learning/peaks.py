"""What training steps have live at once, by the planner's count."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from arenite.training import TrainingRecipe, make_step, read_for_training
from zoo import mobilenet_v2, resnet50, unet, vgg16

BATCH = 8


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak of a step of `sgd` at a batch of 8, in the order that it is written in.

    Attributes:
        network: Name of the network.
        operators: Number of operators of the step.
        live_bytes: Bytes live at once besides the states.
        state_bytes: Bytes of the states: the weights.
    """

    network: str
    operators: int
    live_bytes: int
    state_bytes: int


NETWORKS: Mapping[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "mobilenet-v2": (mobilenet_v2.network, "cross-entropy"),
    "resnet50": (resnet50.network, "cross-entropy"),
    "unet": (unet.network, "bce"),
    "vgg16": (vgg16.network, "cross-entropy"),
}
"""Networks by name, with their loss."""


def peak(name: str) -> Peak:
    """Return the peak of a network's step."""
    build, loss = NETWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(build(), path)
        program = read_for_training(path, BATCH)
    step = make_step(program, TrainingRecipe(loss))
    states = sum(each.size for each in step.state_types.values())
    return Peak(name, len(step.model.graph.node), step.peak, states)
