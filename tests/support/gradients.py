"""Gradients of a training step beside central differences of its loss, in 64 bits."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from arenite.training import Masks, TrainingRecipe, TrainingStep, make_step, read_for_training
from support.wide_reference import evaluator

Array = NDArray[Any]


def randomised(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return the model with random weights of floating point, away from 0."""
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype.kind == "f" and not array.any():
            values = random.uniform(0.1, 1, array.shape) * random.choice([-1, 1], array.shape)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(array.dtype), tensor.name))
    return model


def step_of(
    folder: Path,
    model: onnx.ModelProto,
    recipe: TrainingRecipe,
    masks: Masks = MappingProxyType({}),
    **how: Any,
) -> TrainingStep:
    """Return the training step of a model; it passes the checker of the onnx package."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    step = make_step(read_for_training(path, **how), recipe, masks)
    onnx.checker.check_model(step.model, full_check=True)
    return step


def feeds_of(step: TrainingStep, seed: int = 1) -> dict[str, Array]:
    """Return random inputs and the first values of the states."""
    random = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for name, (dtype, shape) in step.inputs.items():
        if dtype.label.startswith("float"):
            feeds[name] = random.uniform(0, 1, shape).astype(dtype.label)
        else:
            feeds[name] = random.integers(0, 2, shape).astype(dtype.label)
    return feeds | first_states(step)


def first_states(step: TrainingStep) -> dict[str, Array]:
    """Return the values that the states start with."""
    initial = {each.name: each for each in step.model.graph.initializer}
    found: dict[str, Array] = {}
    for value in step.model.graph.input:
        if value.name not in step.states:
            continue
        if value.name in initial:
            found[value.name] = onnx.numpy_helper.to_array(initial[value.name])
        else:
            tensor = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            found[value.name] = np.zeros([d.dim_value for d in tensor.shape.dim], dtype)
    return found


def gradients_of(
    step: TrainingStep,
    feeds: Mapping[str, Array],
    run: Callable[[list[str], dict[str, Array]], list[Array]] | None = None,
) -> dict[str, Array]:
    """Return the gradient of each weight.

    With `momentum` it is the momentum after the first run, to the bit; with `sgd` at a rate of 1
    what is subtracted.
    """
    with_momentum = f"{step.trained[0]}/momentum" in step.states
    read = [f"{name}/momentum" if with_momentum else name for name in step.trained]
    names = [step.states[name] for name in read]
    made = run(names, dict(feeds)) if run else evaluator(step.model).run(names, dict(feeds))
    return {
        name: new if with_momentum else feeds[name] - new
        for name, new in zip(step.trained, made, strict=True)
    }


def central_differences(
    step: TrainingStep,
    feeds: Mapping[str, Array],
    name: str,
    places: Sequence[int],
    distance: float = 1e-5,
) -> Array:
    """Return how the loss changes with elements of a weight, by their places."""
    forward = _forward(step.model)
    found = []
    for place in places:
        losses = []
        for move in (distance, -distance):
            moved = np.array(feeds[name])
            moved.reshape(-1)[place] += move
            given = {key: each for key, each in feeds.items() if key in forward.input_names}
            losses.append(float(forward.run(["loss"], {**given, name: moved})[0]))
        found.append((losses[0] - losses[1]) / (2 * distance))
    return np.array(found)


def _forward(model: onnx.ModelProto) -> ReferenceEvaluator:
    """Return the part of a step that computes the loss."""
    forward = onnx.ModelProto()
    forward.CopyFrom(model)
    needed, kept = {"loss"}, []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input)
    del forward.graph.node[:], forward.graph.output[1:]
    forward.graph.node.extend(kept[::-1])
    inputs = [value for value in model.graph.input if value.name in needed]
    del forward.graph.input[:]
    forward.graph.input.extend(inputs)
    return evaluator(forward)


def check_gradients(
    step: TrainingStep,
    feeds: Mapping[str, Array],
    most: int = 12,
    tolerance: float = 1e-6,
    distance: float = 1e-5,
) -> None:
    """Assert that gradients agree with central differences, at up to `most` places of each."""
    found = gradients_of(step, feeds)
    random = np.random.default_rng(2)
    for name, gradient in found.items():
        count = min(most, gradient.size)
        places = sorted(random.choice(gradient.size, count, replace=False).tolist())
        expected = central_differences(step, feeds, name, places, distance)
        scale = max(1e-3, float(np.abs(gradient).max()))
        np.testing.assert_allclose(
            gradient.reshape(-1)[places], expected, rtol=0, atol=tolerance * scale, err_msg=name
        )
        assert np.abs(gradient).max() > 0, f"{name} has no gradient"
