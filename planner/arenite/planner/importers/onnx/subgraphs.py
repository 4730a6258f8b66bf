"""Nodes with subgraphs as models of their own: If, Loop and Scan."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from arenite.planner.importers.onnx.external_data import UnreadableTensorError, embed
from arenite.planner.importers.onnx.node import Operand, Origin, empty_model
from arenite.planner.importers.onnx.order import captured_names, node_reads, ordered_nodes
from arenite.planner.importers.onnx.types import write_type


def without_dead_nodes(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the node with its subgraphs reduced to what contributes to their outputs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            _reduce(attribute.g)
    return copy


def captures(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return what the subgraphs of a node read from outside, without its own inputs."""
    found = (name for each in _graphs(node) for name in captured_names(each))
    return tuple(dict.fromkeys(name for name in found if name not in node.input))


def subgraph_model(
    origin: Origin,
    operands: Sequence[Operand],
    values: Mapping[int, onnx.TensorProto],
    folder: Path,
) -> tuple[onnx.ModelProto, list[str]]:
    """Return a model whose only operator is a node with subgraphs, and the name of each operand.

    Names stay as they are, since the subgraphs mention them.

    Args:
        origin: The node.
        operands: What its step reads, by position.
        values: Values of the operands that become constants of the new model, by position.
        folder: Folder of the weights that lie in other files.

    Raises:
        MissingDataError: Weights of a subgraph cannot be read.
    """
    model = empty_model(origin.dialect)
    graph = model.graph
    copy = graph.node.add()
    copy.CopyFrom(origin.node)
    for subgraph in _graphs(copy):
        try:
            embed(subgraph, folder)
        except UnreadableTensorError as error:
            raise error.as_missing_data() from error
    names = [*copy.input, *origin.captured]
    for position, (name, operand) in enumerate(zip(names, operands, strict=True)):
        if operand.type is None or name in names[:position]:
            continue
        if position in values:
            constant = graph.initializer.add()
            constant.CopyFrom(values[position])
            constant.name = name
        else:
            value = graph.input.add()
            value.name = name
            write_type(value.type, operand.type)
    for name in copy.output:
        if name:
            graph.output.add().name = name
    return model, names


def _graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def _reduce(graph: onnx.GraphProto) -> None:
    nodes = [without_dead_nodes(node) for _, node in ordered_nodes(graph)[0]]
    read = {name for node in nodes for name in node_reads(node)}
    read.update(output.name for output in graph.output)
    weights = [each for each in graph.initializer if each.name in read]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.initializer[:]
    graph.initializer.extend(weights)
