"""Networks as ONNX models with random weights, and 1,797 handwritten digits of 8 x 8 pixels."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from arenite.compression.retrain import Distillation
from arenite.training.losses import DistillationLoss

SIDE = 8
"""Pixels of an image in a row."""

FLAT, PLANE = (SIDE * SIDE,), (1, SIDE, SIDE)
"""Shapes of an image in `perceptron` and in `lenet`."""


def perceptron(seed: int, first: int = 300, second: int = 100) -> onnx.ModelProto:
    """Return LeNet-300-100 for 64 pixels, or one of other widths."""
    shapes = {"ip1": (first, SIDE * SIDE), "ip2": (second, first), "ip3": (10, second)}
    layers = {"ip1": _PRODUCT, "relu1": _RELU, "ip2": _PRODUCT, "relu2": _RELU, "ip3": _PRODUCT}
    return _network("digits-lenet-300-100", FLAT, layers, shapes, seed)


def lenet(seed: int, first: int = 20, second: int = 50, hidden: int = 500) -> onnx.ModelProto:
    """Return LeNet-5 with convolutions of 3 x 3, or one of other widths."""
    shapes = {
        "conv1": (first, 1, 3, 3), "conv2": (second, first, 3, 3),
        "ip1": (hidden, 4 * second), "ip2": (10, hidden),
    }  # fmt: skip
    layers = {
        "conv1": _FILTERS, "relu1": _RELU, "pool1": _POOL,
        "conv2": _FILTERS, "relu2": _RELU, "pool2": _POOL, "flat": ("Flatten", {}),
        "ip1": _PRODUCT, "relu3": _RELU, "ip2": _PRODUCT,
    }  # fmt: skip
    return _network("digits-lenet-5", PLANE, layers, shapes, seed)


_RELU: tuple[str, dict[str, Any]] = ("Relu", {})
_PRODUCT: tuple[str, dict[str, Any]] = ("Gemm", {"transB": 1})
_FILTERS: tuple[str, dict[str, Any]] = ("Conv", {"pads": [1, 1, 1, 1]})
_POOL: tuple[str, dict[str, Any]] = ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]})


def _network(
    name: str,
    image: tuple[int, ...],
    layers: Mapping[str, tuple[str, dict[str, Any]]],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> onnx.ModelProto:
    """Return a chain of layers for one image, weights and biases drawn as PyTorch draws them."""
    random = np.random.default_rng(seed)
    nodes, weights, last = [], [], "image"
    for label, (op_type, attributes) in layers.items():
        operands = [last]
        if label in shapes:
            bound = 1 / math.sqrt(math.prod(shapes[label][1:]))
            for kind, shape in (("weight", shapes[label]), ("bias", shapes[label][:1])):
                operands.append(f"{label}.{kind}")
                drawn = random.uniform(-bound, bound, shape).astype(np.float32)
                weights.append(numpy_helper.from_array(drawn, operands[-1]))
        nodes.append(helper.make_node(op_type, operands, [label], label, **attributes))
        last = label
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, *image])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 10])],
        weights,
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="arenite"
    )
    onnx.checker.check_model(made)
    return made


def num_bytes(model: onnx.ModelProto) -> int:
    """Return the bytes of weights and biases as 32-bit floats."""
    return sum(4 * math.prod(each.dims) for each in model.graph.initializer)


def scores_of(model: onnx.ModelProto) -> Callable[[Mapping[str, NDArray[Any]]], NDArray[Any]]:
    """Return a function that computes the scores of a batch of images in ONNX Runtime."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    for value in (*free.graph.input, *free.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        free.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def scores(batch: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        found: NDArray[Any] = session.run(None, {"image": batch["image"]})[0]
        return found

    return scores


Labelled: TypeAlias = Mapping[str, NDArray[Any]]
"""`image`, float32 from 0 to 1, and `labels`."""

NUM_FOLDS = 10
BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class Split:
    """Digits to train on and digits held out."""

    training: Labelled
    held_out: Labelled


class Noisy:
    """Batches of shuffled images with fresh noise: the digits that a teacher answers for."""

    def __init__(self, digits: Labelled, noise: float, seed: int) -> None:
        self._digits = digits
        self._noise = noise
        self._random = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[Labelled]:
        """Yield the batches of an epoch; the last is filled up with the first images."""
        order = self._random.permutation(len(self._digits["labels"]))
        for chosen in np.resize(order, (-(-len(order) // BATCH_SIZE), BATCH_SIZE)):
            image = self._digits["image"][chosen]
            noise = self._random.standard_normal(image.shape, np.float32)
            yield {"image": image + self._noise * noise, "labels": self._digits["labels"][chosen]}


def splits(seed: int, shape: tuple[int, ...] = FLAT) -> Iterator[Split]:
    """Yield the folds of a shuffle, each class in proportion; each digit is held out once.

    Args:
        seed: Seed of the shuffle.
        shape: Shape of an image.
    """
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, *shape)
    digits = {"image": images, "labels": labels.astype(np.int64)}
    folds = StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=seed)
    for chosen in folds.split(pixels, labels):
        yield Split(*({name: each[part] for name, each in digits.items()} for part in chosen))


def num_wrong(model: onnx.ModelProto, digits: Labelled) -> int:
    """Return the number of digits that a model classifies wrongly."""
    found = scores_of(model)(digits).argmax(1)
    return int((found != digits["labels"]).sum())


def taught_by(dense: onnx.ModelProto, temperature: float, weight: float) -> Distillation:
    """Return the distillation from a dense network."""
    return Distillation(scores_of(dense), DistillationLoss(temperature, weight))
