"""Random networks for a range of sizes: images, lists of rows, and arithmetic on their lengths."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from support.random_graphs import (
    MOST_ELEMENTS,
    ON_IMAGES,
    Graph,
    GraphTensor,
    Length,
    is_fixed,
    is_same,
    spreads,
)


class Network(Graph):
    """A network of random operators."""

    def grow(self) -> None:
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
        wanted = self.draw.randint(3, 12) + (6 if self.way in ON_IMAGES else 0)
        for _ in range(200):
            if len(self.tensors) >= wanted + len(self.inputs):
                break
            self.try_to(self.draw.choice(kinds))
        self.node("Identity", [self.tensors[-1].name])

    def map(self) -> None:
        at = self.any()
        assert at is not None
        kind = self.draw.choice(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "HardSwish", "Softplus"])
        self.add(kind, [at.name], at.shape)

    def combine(self) -> None:
        at = self.any()
        assert at is not None
        kind = self.draw.choice(["Add", "Mul", "Sub", "Max", "Min"])
        others = [each for each in self.tensors if each != at and spreads(each.shape, at.shape)]
        if others and self.draw.random() < 0.8:
            other = self.draw.choice(others).name
        else:
            other = self.weights(*(
                self.draw.choice([1, int(each[0])]) if is_fixed(each) else 1 for each in at.shape
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
            and all(is_same(each.shape[i], at.shape[i]) for i in range(at.rank) if i != axis)
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
        if at is None or not is_fixed(at.shape[1]):
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

    def slice(self, at: GraphTensor, axis: int, start: str, end: str, length: Length) -> None:
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
        if not is_fixed(length) or length[0] < 2:
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
            if not is_same(mine * (theirs[-1] // mine[-1]), theirs):
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
        fixed = [i for i, each in enumerate(at.shape) if is_fixed(each) and each[0] % 2 == 0]
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
        free = [i for i, each in enumerate(made) if not is_fixed(each)]
        if len(free) > 1:  # the shape as the graph computes it, or by zeros
            kept = [i for i in free if i < at.rank and is_same(made[i], at.shape[i])]
            parts = []
            for i, each in enumerate(made):
                if is_fixed(each):
                    parts.append(self.integers(int(each[0])))
                elif i in kept:
                    parts.append(self.draw.choice([self.length(at, i), self.integers(0)]))
                else:
                    parts.append(self.integers(-1))
            if sum(i not in kept for i in free) > 1:
                return
            target = self.node("Concat", parts, axis=0)
        else:
            target = self.integers(*(int(e[0]) if is_fixed(e) else -1 for e in made))
        self.add("Reshape", [at.name, target], tuple(made))

    def multiply(self) -> None:
        at = self.any(2, 3, 4, 5)
        if at is None:
            return
        columns = at.shape[-1]
        fitting = [
            each
            for each in self.tensors
            if each.rank == at.rank and is_same(each.shape[-2], columns)
            and all(map(is_same, each.shape[:-2], at.shape[:-2]))
        ]  # fmt: skip
        if fitting and self.draw.random() < 0.6:
            other = self.draw.choice(fitting)
            self.add("MatMul", [at.name, other.name], (*at.shape[:-1], other.shape[-1]))
        elif is_fixed(columns):
            width = self.width(9)
            operand = self.weights(int(columns[0]), width)
            self.add("MatMul", [at.name, operand], (*at.shape[:-1], self.fixed(width)))

    def attend(self) -> None:
        """Attend from rows to rows: products whose sides both vary."""
        at = self.any(3)
        if at is None or not is_fixed(at.shape[-1]):
            return
        others = [
            each
            for each in self.tensors
            if each.rank == 3 and is_same(each.shape[0], at.shape[0])
            and is_same(each.shape[2], at.shape[2])
        ]  # fmt: skip
        other = self.draw.choice(others)
        width = int(at.shape[-1][0])
        queries = self.node("MatMul", [at.name, self.weights(width, width)])
        keys = self.node("Transpose", [other.name], perm=[0, 2, 1])
        scores = self.node("MatMul", [queries, keys])
        if (at.shape[1][-1] * other.shape[1][-1] * at.shape[0][-1]) > MOST_ELEMENTS:
            return
        shares = self.node("Softmax", [scores], axis=-1)
        made = self.add("MatMul", [shares, other.name], at.shape)
        if self.draw.random() < 0.5:
            self.add("Add", [made.name, at.name], at.shape)

    def normalise(self) -> None:
        at = self.any()
        assert at is not None
        width = at.shape[-1]
        if self.draw.random() < 0.5 or not is_fixed(width):
            self.add("Softmax", [at.name], at.shape, axis=self.draw.randrange(-1, at.rank))
            return
        operands = [at.name, self.weights(int(width[0])), self.weights(int(width[0]))]
        self.add("LayerNormalization", operands, at.shape, axis=-1, epsilon=0.1)

    def _range(self, at: GraphTensor, axis: int) -> str:
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
        if at is None or not is_fixed(at.shape[1]):
            return
        kernel, stride = self.draw.randint(1, 3), self.draw.randint(1, 2)
        depth, pad = int(at.shape[1][0]), self.draw.randrange(kernel)
        sizes = [(each - 1) * stride - 2 * pad + kernel for each in at.shape[2:]]
        shape = (at.shape[0], self.fixed(3), *sizes)
        self.add("ConvTranspose", [at.name, self.weights(depth, 3, kernel, kernel)], shape,
                 strides=[stride, stride], pads=[pad] * 4)  # fmt: skip

    def recur(self) -> None:
        at = self.any(3)
        if at is None or not is_fixed(at.shape[2]):
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
