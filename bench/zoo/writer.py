"""Writes graphs whose lengths may be open: tensors have names, and ONNX infers their shapes."""

from collections.abc import Container
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.zoo.builder import IR_VERSION

MICROSOFT = "com.microsoft"


class GraphWriter:
    """A graph in the making, with seeded weights; methods take and give names of tensors."""

    def __init__(self, name: str, *, opset: int = 17) -> None:
        self._name, self._opset = name, opset
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> str:
        """Add an input; a length that is a name is open."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, x: str, name: str, *shape: int | str, first: bool = False) -> str:
        """Make a tensor an output; return the name that it has from here on.

        Args:
            x: The tensor, which the last node makes.
            name: Of the output.
            *shape: Of the output.
            first: Whether it comes before the outputs so far.
        """
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [name if each == x else each for each in names]
        stated = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        self._outputs.insert(0 if first else len(self._outputs), stated)
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Apply an operator with one output."""
        return self.nodes(operator, *inputs, domain=domain, **attributes)[0]

    def nodes(
        self,
        operator: str,
        *inputs: str,
        count: int = 1,
        without: Container[int] = (),
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Apply an operator with so many outputs, of which some are left out and have no name."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        names = [name, *(f"{name}_{number}" for number in range(1, count))]
        names = ["" if number in without else each for number, each in enumerate(names)]
        self._nodes.append(
            helper.make_node(operator, inputs, names, domain=domain or None, **attributes)
        )
        return names

    def weight(self, *shape: int, scale: float, name: str = "weight") -> str:
        """Add the next random numbers as a constant."""
        values = scale * self._random.standard_normal(shape, np.float32)
        return self.constant(values.astype(np.float32), name)

    def constant(self, value: object, name: str = "constant") -> str:
        """Add a constant."""
        array = np.asarray(value)
        name = f"{name}_{len(self._weights)}"
        self._weights[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value: float) -> str:
        """Add one float."""
        return self.constant(np.float32(value))

    def linear(self, x: str, depth: int, features: int, *, bias: bool = True) -> str:
        """Multiply by a matrix and add a bias, as two operators."""
        y = self.node("MatMul", x, self.weight(depth, features, scale=depth**-0.5))
        return self.node("Add", y, self.weight(features, scale=0.01)) if bias else y

    def length(self, x: str, axis: int) -> str:
        """Return the length of an axis, as a run has it."""
        return self.node("Gather", self.node("Shape", x), self.constant(axis))

    def build(self) -> onnx.ModelProto:
        """Return the network; the same bytes every time."""
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, [*self._weights.values()]
        )
        opsets = [helper.make_opsetid("", self._opset)]
        if any(node.domain == MICROSOFT for node in self._nodes):
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        model = helper.make_model(graph, opset_imports=opsets, producer_name="arenite-zoo")
        model.ir_version = IR_VERSION
        return model
