"""Random networks for a range of sizes, beside the programs of single sizes and ONNX Runtime.

`PYTHONPATH=tests python -m support.range_fuzz COUNT --seed N` runs as many as wanted. A network
knows its lengths as one number for each value of the dimensions, by numpy alone.
"""

import argparse
import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import Built, build_model
from arenite.pipeline.making.fitting import Fitting
from arenite.planner import AreniteError, Budget, Memory
from arenite.planner.errors import PlanError, SizeError
from arenite.planner.programs import CostedMemory
from arenite.planner.sizes import Dimension
from arenite.runtime import Session
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites import Activations, Kernels, Loading, WeightBudget
from arenite.strategies import find_policy
from support.running import assert_same, reference_outputs

_MOST_ELEMENTS = 20_000
_SHARE = 2e-4
"""Results may differ from ONNX Runtime's by this part of the scale."""
_SHARE_OF_HALVES = 2e-2

_ON_IMAGES = ("in bands", "spilled", "recomputed")
"""Ways that need more steps and, most often, steps on images."""

Length = NDArray[np.int64]
"""A length at every value of the dimensions."""
Shape = tuple[Length, ...]


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)


class Network:
    """A network of floats that grows by one random operator at a time.

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
        self.tensors: list[_Tensor] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.has_images = way in _ON_IMAGES and draw.random() < 0.8
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
        self._grow()
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
        self.tensors.append(_Tensor(name, shape))
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

    def add(self, kind: str, inputs: Iterable[str], shape: Shape, **fields: Any) -> _Tensor:
        return self.note(self.node(kind, inputs, **fields), shape)

    def note(self, name: str, shape: Shape) -> _Tensor:
        made = _Tensor(name, shape)
        self.tensors.append(made)
        return made

    def any(self, *ranks: int) -> _Tensor | None:
        """Return a tensor of one of some ranks, most often the last."""
        found = [each for each in self.tensors if not ranks or each.rank in ranks]
        if not found:
            return None
        return found[-1] if self.draw.random() < 0.6 else self.draw.choice(found)

    def length(self, tensor: _Tensor, axis: int) -> str:
        """Return a length of a tensor as the graph computes it, of one element."""
        shape = self.node("Shape", [tensor.name])
        return self.node("Gather", [shape, self.integers(axis)], axis=0)

    def _grow(self) -> None:
        kinds: list[Callable[[], object]] = [
            self.map, self.map, self.combine, self.combine, self.join, self.join, self.turn,
            self.convolve, self.convolve, self.convolve, self.pool, self.pad, self.cut, self.part,
            self.part, self.split, self.stride, self.enlarge, self.flatten, self.regroup,
            self.multiply, self.multiply, self.attend, self.normalise, self.positions, self.mask,
            self.reduce, self.gather, self.tile, self.spread, self.recur, self.accumulate,
            self.count, self.resize_to, self.last, self.window,
        ]  # fmt: skip
        if self.has_images:
            kinds = [
                self.convolve, self.convolve, self.convolve, self.pool, self.map, self.combine,
                self.combine, self.join, self.pad, self.cut, self.part, self.positions,
                self.enlarge, self.spread, self.reduce,
            ]  # fmt: skip
        wanted = self.draw.randint(3, 12) + (6 if self.way in _ON_IMAGES else 0)
        for _ in range(200):
            if len(self.tensors) >= wanted + len(self.inputs):
                break
            before = len(self.nodes), len(self.constants), len(self.tensors)
            self.draw.choice(kinds)()
            made = self.tensors[before[2] :]
            if not all(self._is_sound(each) for each in made):
                for kept, end in zip(
                    (self.nodes, self.constants, self.tensors), before, strict=True
                ):
                    del kept[end:]
        self.node("Identity", [self.tensors[-1].name])

    def _is_sound(self, tensor: _Tensor) -> bool:
        return (
            bool(np.prod(tensor.shape, axis=0).max() <= _MOST_ELEMENTS)
            and min(int(each.min()) for each in tensor.shape) >= 1
        )

    # Operators

    def map(self) -> None:
        at = self.any()
        assert at is not None
        kind = self.draw.choice(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "HardSwish", "Softplus"])
        self.add(kind, [at.name], at.shape)

    def combine(self) -> None:
        at = self.any()
        assert at is not None
        kind = self.draw.choice(["Add", "Mul", "Sub", "Max", "Min"])
        others = [each for each in self.tensors if each != at and _spreads(each.shape, at.shape)]
        if others and self.draw.random() < 0.8:
            other = self.draw.choice(others).name
        else:
            other = self.weights(*(
                self.draw.choice([1, int(each[0])]) if _is_fixed(each) else 1 for each in at.shape
            ))  # fmt: skip
        self.add(kind, [at.name, other], at.shape)

    def join(self) -> None:
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        others = [
            each
            for each in self.tensors
            if each.rank == at.rank
            and all(_is_same(each.shape[i], at.shape[i]) for i in range(at.rank) if i != axis)
        ]
        parts = [at, *(self.draw.choice(others) for _ in range(self.draw.randint(1, 2)))]
        self.draw.shuffle(parts)
        made = list(at.shape)
        made[axis] = sum((each.shape[axis] for each in parts), self.fixed(0))
        self.add("Concat", [each.name for each in parts], tuple(made), axis=axis)

    def turn(self) -> None:
        at = self.any()
        assert at is not None
        perm = self.draw.sample(range(at.rank), at.rank)
        self.add("Transpose", [at.name], tuple(at.shape[axis] for axis in perm), perm=perm)

    def convolve(self) -> None:
        at = self.any(4, 3)
        if at is None or not _is_fixed(at.shape[1]):
            return
        draw, depth, spatial = self.draw, int(at.shape[1][0]), at.rank - 2
        groups = depth if draw.random() < 0.35 else 1
        depth_out = groups * draw.randint(1, 2) if groups > 1 else self.width(8)
        kernel = [draw.randint(1, 3) for _ in range(spatial)]
        strides = [draw.randint(1, 2) for _ in range(spatial)]
        dilations = [draw.choice([1, 1, 2]) for _ in range(spatial)]
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        if draw.random() < 0.3 and max(dilations) == 1:
            fields: dict[str, Any] = {"auto_pad": draw.choice(["SAME_UPPER", "SAME_LOWER"])}
            sizes = [-(-at.shape[i + 2] // strides[i]) for i in range(spatial)]
        else:
            pads = [draw.randrange(extents[i % spatial]) for i in range(2 * spatial)]
            fields = {"pads": pads}
            sizes = [
                (at.shape[i + 2] + pads[i] + pads[i + spatial] - extents[i]) // strides[i] + 1
                for i in range(spatial)
            ]
        operands = [at.name, self.weights(depth_out, depth // groups, *kernel)]
        if draw.random() < 0.5:
            operands.append(self.weights(depth_out))
        shape = (at.shape[0], self.fixed(depth_out), *sizes)
        self.add("Conv", operands, shape, kernel_shape=kernel, strides=strides,
                 dilations=dilations, group=groups, **fields)  # fmt: skip

    def pool(self) -> None:
        at = self.any(4, 3)
        if at is None:
            return
        draw, spatial = self.draw, at.rank - 2
        if draw.random() < 0.2:
            shape = (*at.shape[:2], *([self.fixed(1)] * spatial))
            self.add(draw.choice(["GlobalAveragePool", "GlobalMaxPool"]), [at.name], shape)
            return
        kernel = [draw.randint(1, 3) for _ in range(spatial)]
        strides = [draw.randint(1, 2) for _ in range(spatial)]
        pads = [draw.randrange(kernel[i % spatial]) for i in range(2 * spatial)]
        small = any(k < stride for k, stride in zip(kernel, strides, strict=True))
        ceil = 0 if any(pads) or small else draw.randint(0, 1)
        sizes = [
            (at.shape[i + 2] + pads[i] + pads[i + spatial] - kernel[i] + ceil * (strides[i] - 1))
            // strides[i] + 1
            for i in range(spatial)
        ]  # fmt: skip
        kind = draw.choice(["MaxPool", "AveragePool"])
        if ceil and kind == "AveragePool":
            return
        self.add(kind, [at.name], (*at.shape[:2], *sizes), kernel_shape=kernel, strides=strides,
                 pads=pads, ceil_mode=ceil)  # fmt: skip

    def pad(self) -> None:
        at = self.any()
        assert at is not None
        mode = self.draw.choice(["constant", "constant", "edge", "reflect"])
        before, after = ([0] * at.rank for _ in range(2))
        for axis in self.draw.sample(range(at.rank), min(2, at.rank)):
            most = 2 if mode != "reflect" else min(2, int(at.shape[axis].min()) - 1)
            before[axis], after[axis] = (self.draw.randint(0, max(0, most)) for _ in range(2))
        shape = tuple(length + before[axis] + after[axis] for axis, length in enumerate(at.shape))
        self.add("Pad", [at.name, self.integers(*before, *after)], shape, mode=mode)

    def cut(self) -> None:
        """Cut a fixed part off, from the start or the end."""
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        least = int(at.shape[axis].min())
        if least < 2:
            return
        start, end = self.draw.choice(
            [(self.draw.randrange(1, least), 2**63 - 1), (0, -self.draw.randrange(1, least)),
             (0, self.draw.randrange(1, least)), (-self.draw.randrange(1, least), 2**63 - 1)]
        )  # fmt: skip
        length = at.shape[axis]
        first = length + start if start < 0 else self.fixed(start)
        last = length + end if end < 0 else np.minimum(length, end)
        self.slice(at, axis, self.integers(start), self.integers(end), last - first)

    def slice(self, at: _Tensor, axis: int, start: str, end: str, length: Length) -> None:
        made = list(at.shape)
        made[axis] = length
        self.add("Slice", [at.name, start, end, self.integers(axis)], tuple(made))

    def part(self) -> None:
        """Keep a part of an axis, whose end the graph computes from lengths."""
        at, of = self.any(), self.any()
        assert at is not None
        assert of is not None
        axis, other = self.draw.randrange(at.rank), self.draw.randrange(of.rank)
        length = at.shape[axis]
        stated, value = self.length(of, other), of.shape[other]
        for _ in range(self.draw.randint(0, 2)):
            number = self.draw.randint(1, 4)
            kind = self.draw.choice(["Div", "Sub", "Add", "Mul"])
            stated = self.node(kind, [stated, self.integers(number)])
            compute = {"Div": "__floordiv__", "Sub": "__sub__", "Add": "__add__", "Mul": "__mul__"}
            value = getattr(value, compute[kind])(number)
        if int(value.min()) < 0:
            return
        end = np.minimum(value, length)
        if self.draw.random() < 0.6:
            self.slice(at, axis, self.integers(0), stated, end)
        else:
            self.slice(at, axis, stated, self.integers(2**63 - 1), length - end)

    def window(self) -> None:
        """Keep as many of the last rows as another tensor has."""
        at, of = self.any(), self.any()
        assert at is not None
        assert of is not None
        axis, other = self.draw.randrange(at.rank), self.draw.randrange(of.rank)
        if (at.shape[axis] < of.shape[other]).any():
            return
        start = self.node("Sub", [self.length(at, axis), self.length(of, other)])
        self.slice(at, axis, start, self.integers(2**63 - 1), of.shape[other])

    def split(self) -> None:
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        length = at.shape[axis]
        if not _is_fixed(length) or length[0] < 2:
            return
        first = self.draw.randint(1, int(length[0]) - 1)
        operands = [at.name, self.integers(first, int(length[0]) - first)]
        name = self.node("Split", operands, outputs=2, axis=axis)
        for each, size in ((name, first), (f"{name}_1", int(length[0]) - first)):
            made = list(at.shape)
            made[axis] = self.fixed(size)
            self.note(each, tuple(made))

    def stride(self) -> None:
        at = self.any()
        assert at is not None
        axis, step = self.draw.randrange(at.rank), self.draw.choice([2, 3, -1, -2])
        limits = (0, 2**63 - 1, axis, step) if step > 0 else (-1, -(2**63), axis, step)
        made = list(at.shape)
        made[axis] = -(-at.shape[axis] // abs(step))
        operands = [at.name, *(self.integers(each) for each in limits)]
        self.add("Slice", operands, tuple(made))

    def enlarge(self) -> None:
        at = self.any(4)
        if at is None:
            return
        factors = self.draw.choice([(2, 2), (2, 1), (1, 3), (3, 2)])
        mode, places = self.draw.choice(
            [("nearest", "asymmetric"), ("linear", "asymmetric"), ("linear", "half_pixel")]
        )
        scales = self.constant(np.array([1, 1, *factors], np.float32))
        shape = (*at.shape[:2], *(each * f for each, f in zip(at.shape[2:], factors, strict=True)))
        self.add("Resize", [at.name, "", scales], shape, mode=mode, nearest_mode="floor",
                 coordinate_transformation_mode=places)  # fmt: skip

    def resize_to(self) -> None:
        """Resize to the rows and columns of another, which are its own times a number."""
        at, of = self.any(4), self.any(4)
        if at is None or of is None or at is of:
            return
        for mine, theirs in zip(at.shape[2:], of.shape[2:], strict=True):
            if not _is_same(mine * (theirs[-1] // mine[-1]), theirs):
                return
        none = self.integers(2)
        head = self.node("Slice", [self.node("Shape", [at.name]), self.integers(0), none])
        tail = self.node("Slice", [self.node("Shape", [of.name]), none, self.integers(4)])
        sizes = self.node("Concat", [head, tail], axis=0)
        self.add("Resize", [at.name, "", "", sizes], (*at.shape[:2], *of.shape[2:]),
                 mode="nearest", nearest_mode="floor",
                 coordinate_transformation_mode="asymmetric")  # fmt: skip

    def flatten(self) -> None:
        at = self.any(3, 4)
        if at is None:
            return
        axis = self.draw.randrange(1, at.rank)
        rows, columns = (np.prod(part, axis=0) for part in (at.shape[:axis], at.shape[axis:]))
        self.add("Flatten", [at.name], (rows, columns), axis=axis)

    def regroup(self) -> None:
        """Reshape: two neighbouring axes become one, or a fixed axis two."""
        at = self.any()
        assert at is not None
        fixed = [i for i, each in enumerate(at.shape) if _is_fixed(each) and each[0] % 2 == 0]
        made, axis = list(at.shape), self.draw.randrange(max(1, at.rank - 1))
        if fixed and self.draw.random() < 0.5 and at.rank < 5:
            axis = self.draw.choice(fixed)
            half = self.fixed(int(at.shape[axis][0]) // 2)
            made[axis : axis + 1] = self.draw.choice(
                [[self.fixed(2), half], [half, self.fixed(2)]]
            )
        elif at.rank > 2:
            made[axis : axis + 2] = [made[axis] * made[axis + 1]]
        else:
            return
        free = [i for i, each in enumerate(made) if not _is_fixed(each)]
        if len(free) > 1:  # the shape as the graph computes it, or by zeros
            kept = [i for i in free if i < at.rank and _is_same(made[i], at.shape[i])]
            parts = []
            for i, each in enumerate(made):
                if _is_fixed(each):
                    parts.append(self.integers(int(each[0])))
                elif i in kept:
                    parts.append(self.draw.choice([self.length(at, i), self.integers(0)]))
                else:
                    parts.append(self.integers(-1))
            if sum(i not in kept for i in free) > 1:
                return
            target = self.node("Concat", parts, axis=0)
        else:
            target = self.integers(*(int(e[0]) if _is_fixed(e) else -1 for e in made))
        self.add("Reshape", [at.name, target], tuple(made))

    def multiply(self) -> None:
        at = self.any(2, 3, 4, 5)
        if at is None:
            return
        columns = at.shape[-1]
        fitting = [
            each
            for each in self.tensors
            if each.rank == at.rank and _is_same(each.shape[-2], columns)
            and all(map(_is_same, each.shape[:-2], at.shape[:-2]))
        ]  # fmt: skip
        if fitting and self.draw.random() < 0.6:
            other = self.draw.choice(fitting)
            self.add("MatMul", [at.name, other.name], (*at.shape[:-1], other.shape[-1]))
        elif _is_fixed(columns):
            width = self.width(9)
            operand = self.weights(int(columns[0]), width)
            self.add("MatMul", [at.name, operand], (*at.shape[:-1], self.fixed(width)))

    def attend(self) -> None:
        """Attend from rows to rows: products whose sides both vary."""
        at = self.any(3)
        if at is None or not _is_fixed(at.shape[-1]):
            return
        others = [
            each
            for each in self.tensors
            if each.rank == 3 and _is_same(each.shape[0], at.shape[0])
            and _is_same(each.shape[2], at.shape[2])
        ]  # fmt: skip
        other = self.draw.choice(others)
        width = int(at.shape[-1][0])
        queries = self.node("MatMul", [at.name, self.weights(width, width)])
        keys = self.node("Transpose", [other.name], perm=[0, 2, 1])
        scores = self.node("MatMul", [queries, keys])
        if (at.shape[1][-1] * other.shape[1][-1] * at.shape[0][-1]) > _MOST_ELEMENTS:
            return
        shares = self.node("Softmax", [scores], axis=-1)
        made = self.add("MatMul", [shares, other.name], at.shape)
        if self.draw.random() < 0.5:
            self.add("Add", [made.name, at.name], at.shape)

    def normalise(self) -> None:
        at = self.any()
        assert at is not None
        width = at.shape[-1]
        if self.draw.random() < 0.5 or not _is_fixed(width):
            self.add("Softmax", [at.name], at.shape, axis=self.draw.randrange(-1, at.rank))
            return
        operands = [at.name, self.weights(int(width[0])), self.weights(int(width[0]))]
        self.add("LayerNormalization", operands, at.shape, axis=-1, epsilon=0.1)

    def _range(self, at: _Tensor, axis: int) -> str:
        """Return the numbers of the rows along an axis, as floats that broadcast."""
        scalar = self.node("Squeeze", [self.length(at, axis), self.integers(0)])
        zero, one = (self.constant(np.array(each, np.int64)) for each in (0, 1))
        numbers = self.node(
            "Cast", [self.node("Range", [zero, scalar, one])], to=TensorProto.FLOAT
        )
        if axis == at.rank - 1:
            return numbers
        return self.node("Unsqueeze", [numbers, self.integers(*range(1, at.rank - axis))])

    def positions(self) -> None:
        """Add what depends on the place alone, or multiply by it."""
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        numbers = self._range(at, axis)
        if self.draw.random() < 0.5:
            numbers = self.node(self.draw.choice(["Cos", "Sin"]), [numbers])
        else:
            numbers = self.node("Div", [
                numbers, self.node("Cast", [self.length(at, axis)], to=TensorProto.FLOAT),
            ])  # fmt: skip
        self.add(self.draw.choice(["Add", "Mul"]), [at.name, numbers], at.shape)

    def mask(self) -> None:
        """Hide what is beyond the diagonal, or above a part of the length."""
        at = self.any()
        assert at is not None
        if at.rank < 2:
            return
        columns, rows = self._range(at, at.rank - 1), self._range(at, at.rank - 2)
        hidden = self.node("Greater", [columns, rows])
        low = self.constant(np.array(self.draw.choice([-9.0, 0.0]), np.float32))
        self.add("Where", [hidden, low, at.name], at.shape)

    def reduce(self) -> None:
        at = self.any()
        assert at is not None
        if at.rank < 2:
            return
        axes = sorted(self.draw.sample(range(at.rank), self.draw.randint(1, at.rank - 1)))
        kind = self.draw.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
        keep = self.draw.random() < 0.6
        made = [
            self.fixed(1) if axis in axes else each
            for axis, each in enumerate(at.shape)
            if keep or axis not in axes
        ]
        self.add(kind, [at.name], tuple(made), axes=axes, keepdims=int(keep))

    def gather(self) -> None:
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        least, count = int(at.shape[axis].min()), self.draw.randint(1, 4)
        indices = self.numbers.integers(-least, least, count)
        made = list(at.shape)
        made[axis] = self.fixed(count)
        self.add("Gather", [at.name, self.constant(indices)], tuple(made), axis=axis)

    def last(self) -> None:
        """Take the last row, by the length."""
        at = self.any()
        assert at is not None
        axis = self.draw.randrange(at.rank)
        place = self.node("Sub", [self.length(at, axis), self.integers(1)])
        made = list(at.shape)
        made[axis] = self.fixed(1)
        self.add("Gather", [at.name, place], tuple(made), axis=axis)

    def tile(self) -> None:
        at = self.any()
        assert at is not None
        counts = [self.draw.choice([1, 1, 2]) for _ in at.shape]
        shape = tuple(each * count for each, count in zip(at.shape, counts, strict=True))
        self.add("Tile", [at.name, self.integers(*counts)], shape)

    def spread(self) -> None:
        at = self.any(4)
        if at is None or not _is_fixed(at.shape[1]):
            return
        kernel, stride = self.draw.randint(1, 3), self.draw.randint(1, 2)
        depth, pad = int(at.shape[1][0]), self.draw.randrange(kernel)
        sizes = [(each - 1) * stride - 2 * pad + kernel for each in at.shape[2:]]
        shape = (at.shape[0], self.fixed(3), *sizes)
        self.add("ConvTranspose", [at.name, self.weights(depth, 3, kernel, kernel)], shape,
                 strides=[stride, stride], pads=[pad] * 4)  # fmt: skip

    def recur(self) -> None:
        at = self.any(3)
        if at is None or not _is_fixed(at.shape[2]):
            return
        kind, gates = self.draw.choice([("LSTM", 4), ("GRU", 3)])
        width, hidden = int(at.shape[2][0]), self.draw.choice([3, 8])
        operands = [at.name, self.weights(1, gates * hidden, width),
                    self.weights(1, gates * hidden, hidden)]  # fmt: skip
        name = self.node(kind, operands, outputs=2, hidden_size=hidden)
        one, made = self.fixed(1), self.fixed(hidden)
        self.note(name, (at.shape[0], one, at.shape[1], made))
        self.note(f"{name}_1", (one, at.shape[1], made))

    def accumulate(self) -> None:
        at = self.any()
        assert at is not None
        axis = self.constant(np.array(self.draw.randrange(at.rank), np.int64))
        made = self.add("CumSum", [at.name, axis], at.shape)
        self.add("Tanh", [made.name], at.shape)

    def count(self) -> None:
        """Collect the elements of an input that exceed a number: as many as the data say."""
        if self.outputs:
            return
        at = self.draw.choice(self.tensors[: len(self.inputs)])
        found = self.node("Greater", [at.name, self.constant(np.array(0.4, np.float32))])
        places = self.node("NonZero", [found])
        made = self.node("GatherND", [at.name, self.node("Transpose", [places], perm=[1, 0])])
        made = self.node(self.draw.choice(["Abs", "Tanh", "Neg"]), [made])
        if self.draw.random() < 0.5:
            made = self.node("Concat", [made, made], axis=0)
        self.outputs.append(helper.make_tensor_value_info(made, TensorProto.FLOAT, ["counted"]))

    def _model(self) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input}
        outputs = [
            helper.make_tensor_value_info(
                each.name, TensorProto.FLOAT,
                [int(s[0]) if _is_fixed(s) else f"{each.name}_{i}"
                 for i, s in enumerate(each.shape)],
            )
            for each in self.tensors[len(self.inputs) :]
            if each.name not in read or self.draw.random() < 0.1
        ]  # fmt: skip
        last = self.tensors[-1]
        outputs.append(helper.make_tensor_value_info(
            self.nodes[-1].output[0], TensorProto.FLOAT,
            [int(s[0]) if _is_fixed(s) else f"end_{i}" for i, s in enumerate(last.shape)],
        ))  # fmt: skip
        graph = helper.make_graph(
            self.nodes, "random", self.inputs, [*outputs, *self.outputs], self.constants
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _dimension(draw: random.Random, name: str) -> Dimension:
    step = draw.choice([1, 1, 1, 2, 3, 4, 8])
    low = draw.choice([1, 1, 2, 3, 5, 8]) if draw.random() < 0.7 else step * draw.randint(1, 3)
    return Dimension(name, low, low + step * draw.randint(1, 14), step)


def _is_fixed(length: Length) -> bool:
    return bool((length == length[0]).all())


def _is_same(one: Length, other: Length) -> bool:
    return bool((one == other).all())


def _spreads(one: Shape, other: Shape) -> bool:
    """Tell whether the first shape broadcasts to the second."""
    ends = zip(reversed(one), reversed(other), strict=False)
    return len(one) <= len(other) and all(
        _is_same(each, of) or bool((each == 1).all()) for each, of in ends
    )


# Ways of building


def _whole(path: Path, reading: Reading, program: Path) -> None:
    build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True).write(program)


def _quick(path: Path, reading: Reading, program: Path) -> None:
    build_model(path, reading, kernels=Kernels.DIRECT).write(program)


def _in_bands(path: Path, reading: Reading, program: Path) -> None:
    fitting = Fitting(path, reading)
    found = fitting.frontier()
    fitting.write(program, found[-1 - len(path.read_bytes()) % min(3, len(found))])


def _traded(policy: str) -> Callable[[Path, Reading, Path], None]:
    def write(path: Path, reading: Reading, program: Path) -> None:
        fitting = Fitting(path, reading)
        for share in (50, 70, 90, 97, 100):
            budget = Budget(fitting.whole.height * share // 100)
            try:
                found = fitting.within(budget, None, find_policy(policy))
            except PlanError:
                continue
            fitting.write(program, found)
            return

    return write


def _of_memories(path: Path, reading: Reading, program: Path) -> None:
    height = build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True).arena_bytes
    memories = [
        CostedMemory(Memory("fast", height // 2), 1, 1), CostedMemory(Memory("slow"), 4, 6),
    ]  # fmt: skip
    build_model(path, reading, memories=memories, kernels=Kernels.DIRECT).write(program)


def _streamed(path: Path, reading: Reading, program: Path) -> None:
    loading = random.Random(len(path.read_bytes())).choice(list(Loading))
    for share in (30, 60, 90, 100):
        try:
            budget = WeightBudget(share, is_percent=True, loading=loading)
            _quick(path, replace(reading, weight_budget=budget), program)
        except AreniteError:
            continue
        return


Way = Callable[[Path, Reading, Path], None]
WAYS: dict[str, Way] = {
    "whole": _whole, "quick": _quick, "in bands": _in_bands,
    "spilled": _traded("offload-prefetch"), "recomputed": _traded("greedy-chains"),
    "of two memories": _of_memories, "streamed": _streamed,
}  # fmt: skip
"""How programs are written: all compute the same bits."""


def check(seed: int, folder: Path, way: str | None = None) -> str:
    """Return how a program was written and compared, or `refused` and why.

    Outputs must be those of the program of each size, bit for bit. Only close are they where its
    steps are other ones, as a scale may be merged with the weights at some lengths alone, and
    with 16-bit floats, of which it may keep other tensors.

    Raises:
        AssertionError: Some result is wrong.
    """
    draw = random.Random(-seed - 1)
    way = way or draw.choice(list(WAYS))
    network = Network(seed, way)
    halves = Activations.FP16 if draw.random() < 0.15 else None
    path, program, alone = (folder / name for name in ("n.onnx", "n.arena", "fixed.arena"))
    onnx.save(network.model, path)
    reading = Reading(dims=network.dims, activations=halves)
    try:
        WAYS[way](path, reading, program)
    except SizeError as error:
        return f"refused: seed {seed}, {error}"
    if not program.exists():
        return f"{way}: none"
    options: dict[str, Any] = {"threads": draw.choice([1, 1, 2]), "guard": draw.random() < 0.3}
    sizes = [{each.name: draw.choice(each.values) for each in network.dimensions}
             for _ in range(2)]  # fmt: skip
    sizes.append({each.name: each.low for each in network.dimensions})
    draw.shuffle(sizes)
    is_close = ""
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(Session(program, poison=byte, **options)) for byte in (255, 0)
        ]
        for values in [*sizes, sizes[0]]:
            lengths = network.lengths(values)
            feeds = network.feeds(lengths)
            one, other = (session.run(feeds) for session in sessions)
            assert all(session.sizes.items() >= values.items() for session in sessions)
            assert _equal(one, other), (way, halves, options, values, "depends on poison")
            fixed = build_model(path, replace(reading, dims=lengths), kernels=Kernels.DIRECT,
                                is_whole=True)  # fmt: skip
            fixed.write(alone)
            with Session(alone) as session:
                expected = session.run(feeds)
            if halves is not None:
                assert_same(one, expected, _SHARE_OF_HALVES)
                continue
            if not _equal(one, expected):
                kinds = _kinds(build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True))
                assert kinds != _kinds(fixed), (
                    way, options, values, [n for n in one if not _equal(one, expected, [n])],
                )  # fmt: skip
                is_close = ", close"
            reference = reference_outputs(path, feeds)
            assert_same(one, {name: reference[name] for name in one}, _SHARE)
    return f"{way}{', halves' if halves else is_close}"


def _equal(
    one: Mapping[str, NDArray[Any]],
    other: Mapping[str, NDArray[Any]],
    names: Iterable[str] | None = None,
) -> bool:
    return all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes()
        for name in names or one
    )


def _kinds(built: Built) -> Counter[tuple[str, int]]:
    """Return how many steps of each kind and number of inputs compute numbers."""
    return Counter(
        (type(each.operator).__name__, len(each.inputs))
        for each in built.compiled.program.steps
        if not isinstance(each.operator, Copy)
    )


def main() -> int:
    """Check as many random networks as asked for; name the wrong ones, count the refusals."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=WAYS)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = check(seed, Path(folder), arguments.way)
            except Exception as error:
                sys.stdout.write(f"\nseed {seed}: {type(error).__name__}: {str(error)[:600]}\n")
                sys.stdout.flush()
                outcome = "wrong"
        if outcome.startswith("refused"):
            sys.stdout.write(f"{outcome}\n")
            outcome = "refused"
        outcomes[outcome] += 1
    for outcome, count in outcomes.most_common():
        sys.stdout.write(f"{count:5} {outcome}\n")
    return int(outcomes["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
