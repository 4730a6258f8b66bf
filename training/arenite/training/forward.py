"""A program as the nodes that a training step begins with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Program, Step, TensorKind
from arenite.planner.importers.onnx import Origin, subgraphs
from arenite.planner.operators import Imported
from arenite.training.errors import NotDifferentiableError
from arenite.training.expansions import EXPANSIONS, Call, NotExpandedError, batch_normalization
from arenite.training.graph import Node, StepGraph, Value


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a batch, and the constant that holds their running average.

    Attributes:
        name: Name of the constant.
        value: The statistics of the batch.
        momentum: Share of the old average in the new one.
    """

    name: str
    value: Value
    momentum: float


@dataclass(frozen=True, slots=True)
class Forward:
    """A program in a graph.

    Attributes:
        values: The graph's value of each tensor of the program.
        statistics: Running averages that the step updates.
    """

    values: Mapping[str, Value]
    statistics: list[Statistics] = field(default_factory=list)


class SharedWeights(Protocol):
    """Weights that take the few values of a codebook."""

    @property
    def codebook(self) -> NDArray[np.float32]:
        """The values, one axis."""

    @property
    def indices(self) -> NDArray[np.uint8]:
        """Index of the value of each weight, in the shape of the weights."""


Codebooks: TypeAlias = Mapping[str, SharedWeights]
"""Shared weights by parameter name."""


def codebook_name(parameter: str) -> str:
    """Return the name of the state that holds the codebook of a parameter."""
    return f"{parameter}/codebook"


def write_forward(
    graph: StepGraph,
    program: Program,
    trained: Collection[str],
    shared: Codebooks,
    *,
    batch_statistics: bool,
) -> Forward:
    """Write a program's steps into a graph; differentiated ones may become simpler operators.

    Args:
        graph: The graph, empty.
        program: A model of ONNX, read with its weights.
        trained: Names of the parameters to train.
        shared: Parameters that are read from a codebook.
        batch_statistics: Whether batch norms that are differentiated take the statistics of
            the batch.

    Raises:
        NotDifferentiableError: A step is unsupported.
    """
    return _Writer(graph, program, set(trained), shared, batch_statistics).write()


@dataclass(slots=True)
class _Writer:
    _graph: StepGraph
    _program: Program
    _active: set[str]  # names of tensors that depend on a trained parameter
    _shared: Codebooks
    _batch_statistics: bool
    _values: dict[str, Value] = field(default_factory=dict)
    _statistics: list[Statistics] = field(default_factory=list)

    def write(self) -> Forward:
        program = self._program
        for name in program.input_tensors:
            self._define(name)
        for step in program.steps:
            self._write(step)
        for name in program.output_tensors:
            self._value(name)
        return Forward(self._values, self._statistics)

    def _write(self, step: Step) -> None:
        operator = step.operator
        origin = operator.origin if isinstance(operator, Imported) else None
        if not isinstance(operator, Imported) or not isinstance(origin, Origin):
            raise NotDifferentiableError(step.name, operator.label, "its ONNX node is unknown")
        if any(subgraphs(origin.node)):
            raise NotDifferentiableError(step.name, operator.op_type, "subgraphs are unsupported")
        node = Node(
            step.name, operator.op_type, step.inputs, step.outputs, operator.attributes,
            operator.op_type, origin.node,
        )  # fmt: skip
        is_active = not self._active.isdisjoint(step.reads)
        if is_active:
            self._active.update(step.writes)
        if is_active and self._expanded(node):
            return
        inputs = tuple(self._value(name).name if name else "" for name in step.inputs)
        for name in step.writes:
            self._define(name)
        self._graph.add(replace(node, inputs=inputs))

    def _expanded(self, node: Node) -> bool:
        expansion = EXPANSIONS.get(node.op_type)
        is_norm = node.op_type == "BatchNormalization" and self._batch_statistics
        if expansion is None and not is_norm:
            return False
        self._graph.named(f"{node.name}/")
        inputs = [self._value(name) if name else None for name in node.inputs]
        outputs = [self._typed(name) if name else None for name in node.outputs]
        call = Call(self._graph, node, inputs, outputs)
        try:
            if expansion is None:
                result, mean, variance = batch_normalization(call)
                self._keep(node, mean, variance)
                self._values[node.outputs[0]] = result
                return True
            made = expansion(call)
        except NotExpandedError as reason:
            raise NotDifferentiableError(node.name, node.op_type, str(reason)) from reason
        if made is None:
            return False
        for name, value in zip(node.outputs, made, strict=False):
            if name:
                if value is None:
                    reason_text = f"output {name!r} is unsupported"
                    raise NotDifferentiableError(node.name, node.op_type, reason_text)
                self._values[name] = value
        return True

    def _keep(self, node: Node, mean: Value, variance: Value) -> None:
        momentum = float(node.attributes.get("momentum", 0.9))
        for position, value in ((3, mean), (4, variance)):
            name = node.inputs[position]
            if self._program.tensors[name].kind is TensorKind.CONSTANT:
                self._statistics.append(Statistics(name, value, momentum))

    def _value(self, name: str) -> Value:
        """Return the graph's value of a tensor; constants are added when they are first read."""
        found = self._values.get(name)
        if found is None:
            tensor, graph = self._program.tensors[name], self._graph
            if name in self._shared:
                shared = self._shared[name]
                book = graph.keep(codebook_name(name), shared.codebook, tensor.dtype)
                indices = graph.constant(shared.indices.astype(np.int32))
                graph.named(f"{name}/")
                found = graph.node("Gather", [book, indices], tensor.shape)
            else:
                array = self._program.constants[name]
                found = graph.keep(name, array.reshape(tensor.shape), tensor.dtype)
            self._values[name] = found
        return found

    def _define(self, name: str) -> None:
        self._values[name] = self._graph.values[name] = self._typed(name)

    def _typed(self, name: str) -> Value:
        tensor = self._program.tensors[name]
        return Value(name, tensor.dtype, tensor.shape)
