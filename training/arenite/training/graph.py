"""The ONNX graph of a step while it is written: typed values, nodes in order, constants."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
import onnx.helper
from numpy.typing import NDArray

from arenite.planner import DType
from arenite.planner.importers.onnx import numpy_dtype, write_dtype
from arenite.planner.programs import Names

Array: TypeAlias = NDArray[Any]

_LARGEST_SHARED: Final = 1024
"""Bytes up to which equal constants are found and written once."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph.

    Attributes:
        name: Unique in the graph.
        dtype: Element type.
        shape: Lengths of the axes, outermost first.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return self.dtype.num_bytes(self.num_elements)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator at its place.

    Attributes:
        name: Unique in the graph.
        op_type: Its operator, with its domain unless that is ONNX's own.
        inputs: Names by position; "" where one is left out.
        outputs: Names by position; "" where one is left out.
        attributes: Its attributes, those among them that later versions made inputs.
        rule: Name of its rule in the table of gradients; that of the operator as a rule.
        proto: The node as the model has it, whose attributes are written as they stand.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    proto: onnx.NodeProto | None = None

    def written(self) -> onnx.NodeProto:
        if self.proto is None:
            return onnx.helper.make_node(
                self.op_type, self.inputs, self.outputs, self.name, **self.attributes
            )
        node = onnx.NodeProto()
        node.CopyFrom(self.proto)
        del node.input[:], node.output[:]
        node.input.extend(self.inputs)
        node.output.extend(self.outputs)
        node.name = self.name
        return node


class StepGraph:
    """A graph that grows node by node; the common operators are methods.

    Attributes:
        nodes: Nodes in the order they run.
        values: Every tensor by name, constants among them.
        constants: Elements of the constants by name.

    Args:
        names: Names of tensors that are taken: those of the model.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.nodes: list[Node] = []
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self._names = Names(names)
        self._node_names = Names()
        self._shared: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._prefix = ""

    def named(self, prefix: str) -> None:
        """Set the prefix of the names of further nodes."""
        self._prefix = prefix

    def define(self, name: str, dtype: DType, shape: Sequence[int]) -> Value:
        """Return a value of the model, whose name is kept."""
        value = Value(name, dtype, tuple(map(int, shape)))
        self.values[name] = value
        return value

    def new(self, wanted: str, dtype: DType, shape: Sequence[int]) -> Value:
        return self.define(self._names.take(wanted), dtype, shape)

    def constant(self, array: Array, dtype: DType | None = None) -> Value:
        """Return a constant; equal small constants are shared.

        Args:
            array: Elements.
            dtype: Type to convert them to; by default that of the array.
        """
        elements = np.ascontiguousarray(
            array if dtype is None else np.asarray(array, numpy_dtype(dtype))
        ).reshape(np.shape(array))
        key = (elements.dtype.str, elements.shape, b"")
        if elements.nbytes <= _LARGEST_SHARED:
            key = (*key[:2], elements.tobytes())
            if key in self._shared:
                return self._shared[key]
        found = dtype or DType.of_label(str(elements.dtype))
        value = self.new(f"constant/{len(self.constants)}", found, elements.shape)
        self.constants[value.name] = elements
        if key[2]:
            self._shared[key] = value
        return value

    def keep(self, name: str, array: Array, dtype: DType) -> Value:
        """Return a constant of the model under its own name."""
        self.constants[name] = array
        return self.define(name, dtype, array.shape)

    def node(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        shape: Sequence[int],
        dtype: DType | None = None,
        **attributes: Any,
    ) -> Value:
        """Add a node of one output and return that.

        Args:
            op_type: Operator of ONNX.
            inputs: Values by position; None where one is left out.
            shape: Shape of the output.
            dtype: Its type; by default that of the first input.
            attributes: Attributes of the operator.
        """
        return self.nodes_outputs(op_type, inputs, [(dtype, shape)], **attributes)[0]

    def nodes_outputs(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[DType | None, Sequence[int]]],
        rule: str = "",
        **attributes: Any,
    ) -> list[Value]:
        name = self._node_names.take(f"{self._prefix}{op_type}")
        first = next((each for each in inputs if each is not None), None)
        made: list[Value] = []
        for position, (dtype, shape) in enumerate(outputs):
            found = dtype or (first.dtype if first is not None else DType.FLOAT32)
            made.append(self.new(f"{name}:{position}" if position else name, found, shape))
        self.nodes.append(
            Node(
                name,
                op_type,
                tuple("" if each is None else each.name for each in inputs),
                tuple(each.name for each in made),
                attributes,
                rule or op_type,
            )
        )
        return made

    def add(self, node: Node) -> None:
        """Add a node whose outputs are defined."""
        self._node_names.take(node.name)
        self.nodes.append(node)

    def ints(self, numbers: Sequence[int] | Array) -> Value:
        """Return a constant row of integers: a shape, axes or positions."""
        return self.constant(np.array(numbers, np.int64).reshape(-1))

    def scalar(self, number: float, like: Value) -> Value:
        """Return a constant of one number and no axes, of the type of another value."""
        return self.constant(np.array(number), like.dtype)

    # element by element

    def binary(self, op_type: str, one: Value, other: Value, dtype: DType | None = None) -> Value:
        """Return an element-wise operator of two values that broadcast."""
        return self.node(op_type, [one, other], np.broadcast_shapes(one.shape, other.shape), dtype)

    def unary(self, op_type: str, value: Value, **attributes: Any) -> Value:
        """Return an element-wise operator of one value."""
        return self.node(op_type, [value], value.shape, **attributes)

    def plus(self, one: Value, other: Value) -> Value:
        return self.binary("Add", one, other)

    def minus(self, one: Value, other: Value) -> Value:
        return self.binary("Sub", one, other)

    def times(self, one: Value, other: Value) -> Value:
        return self.binary("Mul", one, other)

    def over(self, one: Value, other: Value) -> Value:
        return self.binary("Div", one, other)

    def scaled(self, value: Value, number: float) -> Value:
        """Return the value times a number, itself if that is 1."""
        return value if number == 1 else self.times(value, self.scalar(number, value))

    def compare(self, op_type: str, one: Value, other: Value) -> Value:
        """Return a mask: Greater, Less, Equal."""
        return self.binary(op_type, one, other, DType.BOOL)

    def both(self, one: Value, other: Value) -> Value:
        """Return where both masks are set."""
        return self.binary("And", one, other)

    def where(self, mask: Value, one: Value, other: Value) -> Value:
        """Return the first value where the mask is set, elsewhere the second."""
        shape = np.broadcast_shapes(mask.shape, one.shape, other.shape)
        return self.node("Where", [mask, one, other], shape, one.dtype)

    def masked(self, mask: Value, value: Value) -> Value:
        """Return the value where the mask is set, elsewhere 0."""
        return self.where(mask, value, self.scalar(0, value))

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return the value in another type, itself if it has that."""
        if value.dtype is dtype:
            return value
        return self.node("Cast", [value], value.shape, dtype, to=write_dtype(dtype))

    def zeros_like(self, value: Value) -> Value:
        """Return zeros that the run computes, instead of a constant of that size."""
        zero = self.scalar(0, value)
        return self.node("Clip", [value, zero, zero], value.shape)

    # shapes

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape, all of whose lengths are stated."""
        if value.shape == tuple(shape):
            return value
        return self.node("Reshape", [value, self.ints(shape)], shape)

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        """Return the axes in another order; a reshape where no element moves."""
        shape = [value.shape[axis] for axis in perm]
        moved = [axis for axis in perm if value.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(value, shape)
        return self.node("Transpose", [value], shape, perm=list(perm))

    def slice(
        self,
        value: Value,
        axes: Sequence[int],
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> Value:
        """Return the elements from `starts` to before `ends`, none of them negative."""
        strides = steps or [1] * len(axes)
        shape = list(value.shape)
        for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
            shape[axis] = -(-(end - start) // stride)
        if tuple(shape) == value.shape:
            return value
        operands = [value, self.ints(starts), self.ints(ends), self.ints(axes)]
        if any(stride != 1 for stride in strides):
            operands.append(self.ints(strides))
        return self.node("Slice", operands, shape)

    def pad(self, value: Value, before: Sequence[int], after: Sequence[int]) -> Value:
        """Return the value with zeros around it; a negative number cuts."""
        inner = self.slice(
            value,
            range(value.rank),
            [max(0, -each) for each in before],
            [length - max(0, -each) for length, each in zip(value.shape, after, strict=True)],
        )
        begins, ends = [max(0, each) for each in before], [max(0, each) for each in after]
        if not any((*begins, *ends)):
            return inner
        shape = [sum(lengths) for lengths in zip(inner.shape, begins, ends, strict=True)]
        pads = self.ints([*begins, *ends])
        return self.node("Pad", [inner, pads, self.scalar(0, value)], shape)

    def gather(self, value: Value, places: Array, axis: int) -> Value:
        """Return the elements at constant places along an axis."""
        shape = (*value.shape[:axis], len(places), *value.shape[axis + 1 :])
        return self.node("Gather", [value, self.ints(places)], shape, axis=axis)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Return the values one after another along an axis."""
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(each.shape[axis] for each in values)
        return self.node("Concat", values, shape, axis=axis)

    def split(self, value: Value, axis: int, lengths: Sequence[int]) -> list[Value]:
        """Return the value cut along an axis."""
        if len(lengths) == 1:
            return [value]
        shapes = [(None, [*value.shape[:axis], n, *value.shape[axis + 1 :]]) for n in lengths]
        return self.nodes_outputs("Split", [value, self.ints(lengths)], shapes, axis=axis)

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the value repeated to a shape that it broadcasts to."""
        if value.shape == tuple(shape):
            return value
        return self.node("Expand", [value, self.ints(shape)], shape)

    # sums and products

    def reduce_sum(self, value: Value, axes: Sequence[int], *, keepdims: bool = False) -> Value:
        if not axes:
            return value
        if all(value.shape[axis] == 1 for axis in axes):
            return self.reshape(value, reduced(value.shape, axes, keepdims=keepdims))
        return self.node(
            "ReduceSum",
            [value, self.ints(axes)],
            reduced(value.shape, axes, keepdims=keepdims),
            keepdims=int(keepdims),
        )

    def total(self, value: Value) -> Value:
        """Return the sum of all elements."""
        return self.reduce_sum(value, list(range(value.rank)))

    def mean(self, value: Value, axes: Sequence[int]) -> Value:
        """Return the mean along axes, which stay with a length of 1."""
        count = math.prod(value.shape[axis] for axis in axes)
        return self.scaled(self.reduce_sum(value, axes, keepdims=True), 1 / max(1, count))

    def sum_to(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the sum over broadcast axes: the gradient of broadcasting from a shape."""
        added = value.rank - len(shape)
        axes = [
            axis
            for axis, length in enumerate(value.shape)
            if axis < added or (shape[axis - added] == 1 and length != 1)
        ]
        return self.reshape(self.reduce_sum(value, axes, keepdims=True), shape)

    def matmul(self, one: Value, other: Value) -> Value:
        """Return the product of matrices, in batches that broadcast."""
        batch = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
        return self.node("MatMul", [one, other], (*batch, one.shape[-2], other.shape[-1]))

    def gemm(
        self,
        one: Value,
        other: Value,
        plus: Value | None = None,
        *,
        trans_a: bool = False,
        trans_b: bool = False,
        alpha: float = 1.0,
    ) -> Value:
        """Return the product of two matrices, each transposed or not, plus another value."""
        shape = (one.shape[1 if trans_a else 0], other.shape[0 if trans_b else 1])
        stated = {"transA": (int(trans_a), 0), "transB": (int(trans_b), 0), "alpha": (alpha, 1.0)}
        attributes = {name: given for name, (given, default) in stated.items() if given != default}
        operands = [one, other] if plus is None else [one, other, plus]
        return self.node("Gemm", operands, shape, dtype=None, **attributes)


def reduced(
    shape: Sequence[int], axes: Sequence[int], *, keepdims: bool = False
) -> tuple[int, ...]:
    """Return the shape of a reduction's result."""
    if keepdims:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)
