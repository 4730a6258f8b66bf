"""From an ONNX file to a graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import onnx

from arenite.planner.errors import about_file
from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.importers.onnx.binding import bind
from arenite.planner.importers.onnx.branches import walk_if
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.loops import walk_loop, walk_scan
from arenite.planner.importers.onnx.node import (
    Dialect,
    Operand,
    input_name,
    single_node_model,
)
from arenite.planner.importers.onnx.order import live_operators
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.values import Values
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.rewrites.noops import drop_noops


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """One operator as a model of its own.

    Attributes:
        model: The file's bytes.
        inputs: Tensors of the whole model that it reads, without constants.
        outputs: Those it writes.
        input_names: What the file calls them.
        output_names: What the file calls them.
    """

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A graph and what its file says beside it.

    Attributes:
        graph: The model.
        dialect: What gives its operators their meaning.
        values: Of its constants, by tensor name.
        nodes: What operators without subgraphs were made from, by operator name.
    """

    graph: Graph
    dialect: Dialect
    values: Values
    nodes: Mapping[str, onnx.NodeProto]

    def operator_model(self, operator: Operator) -> OperatorModel | None:
        """Return an operator as a model of its own, its constants inside; None if it cannot."""
        node = self.nodes.get(operator.name)
        if node is None:
            return None
        tensors = self.graph.tensors
        operands = [
            Operand(name, TensorType(tensors[name].dtype, tensors[name].shape) if name else None)
            for name in operator.inputs
        ]
        values = {
            position: value
            for position, name in enumerate(operator.inputs)
            if name
            and tensors[name].kind is TensorKind.CONSTANT
            and (value := self.values.as_tensor(name)) is not None
        }
        model = single_node_model(node, self.dialect, operands, values)
        inputs = {
            input_name(position): name
            for position, name in enumerate(operator.inputs)
            if name and position not in values
        }
        outputs = [name for name in operator.outputs if name]
        return OperatorModel(
            model.SerializeToString(),
            tuple(inputs.values()),
            tuple(outputs),
            tuple(inputs),
            tuple(output.name for output in model.graph.output),
        )


_CONTROL_FLOW = {"If": walk_if, "Loop": walk_loop, "Scan": walk_scan}
_HIDDEN = {"If": "branches are", "Loop": "body is", "Scan": "body is"}


class Read(Protocol):
    """What `read` is, for who imports it when it is needed."""

    def __call__(
        self,
        path: Path,
        dims: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        *,
        weights: bool = False,
    ) -> OnnxModel:
        """Return the model in the file."""
        ...


def read(
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    weights: bool = False,
) -> OnnxModel:
    """Return the model in the file; see `read_onnx_model`."""
    with about_file(path):
        return _read(load_model(path), path, dims, shapes, weights=weights)


def _read(
    model: onnx.ModelProto,
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    weights: bool,
) -> OnnxModel:
    binding = bind(model.graph, dims, shapes)
    walk = Walk(model, binding, _CONTROL_FLOW, path.parent, weights=weights)
    walked = walk.run()
    outputs = tuple(dict.fromkeys(output.name for output in model.graph.output))
    operators = live_operators(walked, outputs)
    graph = Graph.of(
        name=path.stem,
        tensors=_tensors(walk, operators, tuple(binding.inputs), outputs),
        operators=operators,
        inputs=tuple(binding.inputs),
        outputs=outputs,
        notes=_notes(walk, operators, walk.num_dead + len(walked) - len(operators)),
    )
    return OnnxModel(drop_noops(graph), walk.dialect, walk.values, walk.nodes)


def _tensors(
    walk: Walk, operators: Sequence[Operator], inputs: Sequence[str], outputs: Sequence[str]
) -> list[Tensor]:
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(walk.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(inputs, TensorKind.INPUT))
    used = [name for operator in operators for name in (*operator.reads, *operator.writes)]
    return [
        Tensor(name, *walk.types[name], kinds.get(name, TensorKind.ACTIVATION))
        for name in dict.fromkeys((*inputs, *used, *outputs))
    ]


def _notes(walk: Walk, operators: Sequence[Operator], num_dead: int) -> list[str]:
    notes = [
        f"{operator.op_type} {operator.name!r}: its {_HIDDEN[operator.op_type]} not planned; "
        f"{operator.scratch:,} B reserved"
        for operator in operators
        if operator.op_type in _HIDDEN
    ]
    if walk.num_folded:
        notes.append(f"operators left out because they make constants only: {walk.num_folded}")
    if num_dead:
        notes.append(f"operators left out because they reach no output: {num_dead}")
    return notes
