"""An ONNX graph in the making: typed values, nodes in order, constants each written once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
import onnx.helper
from numpy.typing import NDArray

from arenite.planner.dtypes import DType
from arenite.planner.importers.onnx.types import numpy_dtype
from arenite.planner.names import Names

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
        """Number of axes."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """Number of elements."""
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
        """Return the node as ONNX writes it."""
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


class Graph:
    """A graph in the making.

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
        """Begin the names of what is made from now on with this."""
        self._prefix = prefix

    def define(self, name: str, dtype: DType, shape: Sequence[int]) -> Value:
        """Return a value of the model, whose name is kept."""
        value = Value(name, dtype, tuple(map(int, shape)))
        self.values[name] = value
        return value

    def new(self, wanted: str, dtype: DType, shape: Sequence[int]) -> Value:
        """Return a value of a name that nothing has."""
        return self.define(self._names.take(wanted), dtype, shape)

    def constant(self, array: Array, dtype: DType | None = None) -> Value:
        """Return a constant; small ones that are equal are one.

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
        found = dtype or DType((str(elements.dtype), 8 * elements.dtype.itemsize))
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
        """Add a node of several outputs and return them."""
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
