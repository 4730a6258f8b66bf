"""Graphs for a range of sizes that grow at random, and know their lengths by numpy alone."""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from arenite.planner.sizes import Dimension

MOST_ELEMENTS = 20_000

ON_IMAGES = ("in bands", "spilled", "recomputed")
"""Ways that need more steps and, most often, steps on images."""

Length = NDArray[np.int64]
"""A length at every value of the dimensions."""
Shape = tuple[Length, ...]


@dataclass(frozen=True)
class GraphTensor:
    name: str
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)


class Graph:
    """A graph of floats that grows by one random operator at a time.

    Attributes:
        dimensions: Those of its inputs.
        model: The network.
        dims: Its dimensions by name, those that are sums of others among them.
    """

    def __init__(self, seed: int, way: str = "") -> None:
        self.draw = draw = random.Random(seed)
        self.way = way
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.tensors: list[GraphTensor] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.has_images = way in ON_IMAGES and draw.random() < 0.8
        names = ["n", "m", "k"][: draw.choice([1, 2, 2, 2, 3])]
        self.dimensions = tuple(_dimension(draw, name) for name in names)
        axes = [np.array(each.values) for each in self.dimensions]
        self.values = dict(
            zip(names, (each.ravel() for each in np.meshgrid(*axes, indexing="ij")), strict=True)
        )
        self.num_points = len(self.values["n"])
        self.dims: dict[str, int | Dimension] = {each.name: each for each in self.dimensions}
        self.used: set[str] = set()
        self.inputs = [
            self._input(name, 4 if self.has_images else draw.choice([3, 3, 4, 4, 4, 2]))
            for name in "xz"[: draw.randint(1, 2)]
        ]
        self.dimensions = tuple(each for each in self.dimensions if each.name in self.used)
        self.dims = {name: each for name, each in self.dims.items() if name in self.used}
        self.grow()
        self.model = self._model()

    def fixed(self, value: int) -> Length:
        return np.full(self.num_points, value, np.int64)

    def _input(self, name: str, rank: int) -> onnx.ValueInfoProto:
        draw = self.draw
        stated: list[int | str] = [draw.choice([1, 2, 3, 4, 6]) for _ in range(rank)]
        names = list(self.values)
        wanted = draw.sample(names, min(len(names), draw.randint(1, 2), rank))
        places = sorted(draw.sample(range(1 if rank > 2 else 0, rank), len(wanted)))
        if rank == 4 and draw.random() < 0.7:
            places = [2, 3][: len(wanted)]
        for place, each in zip(places, wanted, strict=True):
            stated[place] = each
        if self.has_images:
            stated[0] = 1
        if name == "z" and draw.random() < 0.3:  # the length of a cache
            one, other = (draw.choice(self.dimensions) for _ in range(2))
            if {one.name, other.name} <= self.used:
                self.values["total"] = self.values[one.name] + self.values[other.name]
                self.dims["total"] = one.size + other.size
                stated[places[0]] = "total"
        self.used |= {each for each in stated if isinstance(each, str)}
        shape = tuple(self.values[s] if isinstance(s, str) else self.fixed(s) for s in stated)
        self.tensors.append(GraphTensor(name, shape))
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, stated)

    def lengths(self, sizes: dict[str, int]) -> dict[str, int]:
        """Return the lengths of the inputs by name, sums among them."""
        matches = [self.values[name] == size for name, size in sizes.items()]
        (place, *_) = np.flatnonzero(np.logical_and.reduce(matches))
        return {name: int(self.values[name][place]) for name in self.dims}

    def feeds(self, lengths: dict[str, int]) -> dict[str, NDArray[np.float32]]:
        """Return random inputs of these lengths."""
        return {
            each.name: self.numbers.standard_normal(
                [d.dim_value or lengths[d.dim_param] for d in each.type.tensor_type.shape.dim]
            ).astype(np.float32)
            for each in self.inputs
        }

    # What graphs are made of

    def constant(self, array: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int) -> str:
        scale = math.sqrt(max(1, math.prod(shape[1:])))
        return self.constant((self.numbers.standard_normal(shape) / scale).astype(np.float32))

    def width(self, most: int) -> int:
        """Return how many channels an operator makes; many where its weights are streamed."""
        if self.way == "streamed" and self.draw.random() < 0.5:
            return self.draw.choice([48, 64, 96, 300])
        return self.draw.randint(1, most)

    def node(self, kind: str, inputs: Iterable[str], outputs: int = 1, **fields: Any) -> str:
        name = f"t{len(self.nodes)}"
        names = [name, *(f"{name}_{each}" for each in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"n_{name}", **fields))
        return name

    def add(self, kind: str, inputs: Iterable[str], shape: Shape, **fields: Any) -> GraphTensor:
        return self.note(self.node(kind, inputs, **fields), shape)

    def note(self, name: str, shape: Shape) -> GraphTensor:
        made = GraphTensor(name, shape)
        self.tensors.append(made)
        return made

    def any(self, *ranks: int) -> GraphTensor | None:
        """Return a tensor of one of some ranks, most often the last."""
        found = [each for each in self.tensors if not ranks or each.rank in ranks]
        if not found:
            return None
        return found[-1] if self.draw.random() < 0.6 else self.draw.choice(found)

    def length(self, tensor: GraphTensor, axis: int) -> str:
        """Return a length of a tensor as the graph computes it, of one element."""
        shape = self.node("Shape", [tensor.name])
        return self.node("Gather", [shape, self.integers(axis)], axis=0)

    def grow(self) -> None:
        """Add operators."""
        raise NotImplementedError

    def try_to(self, add: Callable[[], object]) -> None:
        """Add an operator, and take it back if it has too many elements or none at some size."""
        before = len(self.nodes), len(self.constants), len(self.tensors)
        add()
        if not all(map(self._is_sound, self.tensors[before[2] :])):
            for kept, end in zip((self.nodes, self.constants, self.tensors), before, strict=True):
                del kept[end:]

    def _is_sound(self, tensor: GraphTensor) -> bool:
        return (
            bool(np.prod(tensor.shape, axis=0).max() <= MOST_ELEMENTS)
            and min(int(each.min()) for each in tensor.shape) >= 1
        )

    def _model(self) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input}
        outputs = [
            helper.make_tensor_value_info(
                each.name, TensorProto.FLOAT,
                [int(s[0]) if is_fixed(s) else f"{each.name}_{i}"
                 for i, s in enumerate(each.shape)],
            )
            for each in self.tensors[len(self.inputs) :]
            if each.name not in read or self.draw.random() < 0.1
        ]  # fmt: skip
        last = self.tensors[-1]
        outputs.append(helper.make_tensor_value_info(
            self.nodes[-1].output[0], TensorProto.FLOAT,
            [int(s[0]) if is_fixed(s) else f"end_{i}" for i, s in enumerate(last.shape)],
        ))  # fmt: skip
        graph = helper.make_graph(
            self.nodes, "random", self.inputs, [*outputs, *self.outputs], self.constants
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _dimension(draw: random.Random, name: str) -> Dimension:
    step = draw.choice([1, 1, 1, 2, 3, 4, 8])
    low = draw.choice([1, 1, 2, 3, 5, 8]) if draw.random() < 0.7 else step * draw.randint(1, 3)
    return Dimension(name, low, low + step * draw.randint(1, 14), step)


def is_fixed(length: Length) -> bool:
    return bool((length == length[0]).all())


def is_same(one: Length, other: Length) -> bool:
    return bool((one == other).all())


def spreads(one: Shape, other: Shape) -> bool:
    """Tell whether the first shape broadcasts to the second."""
    ends = zip(reversed(one), reversed(other), strict=False)
    return len(one) <= len(other) and all(
        is_same(each, of) or bool((each == 1).all()) for each, of in ends
    )
