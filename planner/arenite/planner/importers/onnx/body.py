"""Subgraphs that are not unfolded: their memory is sized, not planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import onnx

from arenite.planner.errors import ModelFormatError
from arenite.planner.importers.onnx.hidden import height_of
from arenite.planner.importers.onnx.node import Origin, attributes
from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.importers.onnx.order import live_steps
from arenite.planner.importers.onnx.scope import Scope
from arenite.planner.importers.onnx.subgraphs import captures, without_dead_nodes
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.liveness import Boundary
from arenite.planner.program import Step


@dataclass(frozen=True, slots=True)
class Body:
    """What an operator has to know about its subgraph.

    Attributes:
        outputs: Names of the tensors it returns.
        types: Types of the outputs.
        reserve: Bytes that hold what it receives and makes while it runs, nested subgraphs
            included.
    """

    outputs: tuple[str, ...]
    types: tuple[TensorType, ...]
    reserve: int


def subgraph(node: onnx.NodeProto, name: str, key: str) -> onnx.GraphProto:
    """Return the graph that is an attribute of the node."""
    graph = onnx.AttributeProto.GRAPH
    found = next((a.g for a in node.attribute if a.name == key and a.type == graph), None)
    if found is None:
        raise ModelFormatError(f"operator {name!r} lacks its {key!r}")
    return found


def require(name: str, fits: bool, what: str) -> None:
    """Raise unless an operator's subgraph or attributes fit the operator.

    Raises:
        ModelFormatError: `fits` is false.
    """
    if not fits:
        raise ModelFormatError(f"operator {name!r} and its subgraph disagree on the {what}")


def define_inputs(
    walk: Walk, graph: onnx.GraphProto, scope: Scope, types: Sequence[TensorType]
) -> list[str]:
    """Return the flat names of a subgraph's inputs, one for each of `types`."""
    return [
        walk.define(scope, value.name, tensor_type)
        for value, tensor_type in zip(graph.input, types, strict=True)
    ]


def walk_body(
    walk: Walk,
    graph: onnx.GraphProto,
    scope: Scope,
    inputs: Sequence[str] = (),
    *,
    outputs_elsewhere: bool = False,
) -> Body:
    """Return what the operator has to know about its subgraph.

    Args:
        walk: The walk over the model.
        graph: The subgraph.
        scope: The subgraph's own scope, with its inputs defined.
        inputs: Flat names of the subgraph's inputs, whose places take the values of the next
            iteration.
        outputs_elsewhere: Whether its outputs are written where those of the operator lie.
    """
    num_outer = len(walk.types)
    steps = walk.walk_graph(graph, scope)
    outputs = [walk.find(scope, output.name) for output in graph.output]
    steps = live_steps(steps, outputs)
    own = {*inputs, *islice(walk.types, num_outer, None)}
    outer = {name for step in steps for name in step.reads if name not in own}
    outer.update(name for name in outputs if name not in own)
    return Body(
        outputs=tuple(outputs),
        types=tuple(walk.types[name] for name in outputs),
        reserve=height_of(
            steps,
            walk.types,
            outer | walk.constants,
            kept=inputs,
            outputs=outputs,
            boundary=Boundary.EXCLUDE if outputs_elsewhere else Boundary.INCLUDE,
        ),
    )


def opaque_step(
    walk: Walk,
    node: onnx.NodeProto,
    name: str,
    scope: Scope,
    types: Sequence[TensorType],
    bodies: Sequence[Body],
    *,
    is_bound: bool = False,
) -> Step:
    """Return the step that stands for `bodies`, one of which runs.

    It reads what the node does, then what the subgraphs capture.

    Args:
        walk: The walk over the model.
        node: The node that the step is made from.
        name: Name of the step.
        scope: Scope in which to define its outputs.
        types: Types of its outputs.
        bodies: The subgraphs that may run.
        is_bound: Whether the types are the largest that the outputs can have.
    """
    node = without_dead_nodes(node)
    captured = captures(node)
    reads = [walk.find(scope, local) if local else "" for local in (*node.input, *captured)]
    outputs = [
        walk.define(scope, local, tensor_type) if local else ""
        for local, tensor_type in zip(node.output, types, strict=False)
    ]
    made_inside = (name for body in bodies for name in body.outputs)
    is_bound = is_bound or not walk.bounded.isdisjoint((*reads, *made_inside))
    if is_bound:
        walk.bounded.update(filter(None, outputs))
    operator = onnx_operator(
        node.op_type,
        attributes(node),
        reserve=max(body.reserve for body in bodies),
        origin=Origin(node, walk.dialect, captured),
        is_bound=is_bound,
    )
    return Step(name, operator, tuple(reads), tuple(outputs))
