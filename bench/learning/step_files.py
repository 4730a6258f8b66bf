"""Steps of training to time, as files for our runtime and for ONNX Runtime."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.training import make_step, read_for_training, write_step
from arenite.training.step import TrainingRecipe
from bench.digits.networks import lenet, perceptron
from bench.zoo.classic import resnet50, unet
from bench.zoo.mobilenets import mobilenet_v2

BATCH = 2


def networks() -> Iterator[tuple[str, onnx.ModelProto, str]]:
    """Yield networks with their loss."""
    yield "lenet-300-100", perceptron(0), "cross-entropy"
    yield "lenet-5", lenet(0), "cross-entropy"
    yield "mobilenet-v2, 64 px", mobilenet_v2(64, 10), "cross-entropy"
    yield "resnet50, 64 px", resnet50(64, 10), "cross-entropy"
    yield "unet, 32 px", unet(32), "bce"


def prepare(folder: Path, model: onnx.ModelProto, loss: str, batch: int = BATCH) -> None:
    """Write a step for both runtimes, with what it is fed."""
    onnx.save(model, folder / "model.onnx")
    step = make_step(
        read_for_training(folder / "model.onnx", batch), TrainingRecipe(loss, "momentum", 1e-3)
    )
    write_step(folder / "step.onnx", step.model)
    build_program(folder / "step.onnx", folder / "step.arena", reading=Reading())
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        name: random.standard_normal(each.shape, np.float32)
        if name == "image"
        else random.integers(0, 2, each.shape).astype(each.dtype.label)
        for name, each in step.inputs.items()
    }
    np.savez(folder / "feeds.npz", **feeds)
    initial = {each.name: each for each in step.model.graph.initializer}
    states: dict[str, Any] = {
        name: onnx.numpy_helper.to_array(initial[name])
        if name in initial
        else np.zeros(each.shape, np.float32)
        for name, each in step.state_types.items()
    }
    np.savez(folder / "states.npz", **states)
    (folder / "states.json").write_text(json.dumps(step.states))
