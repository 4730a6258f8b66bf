"""The nodes that contribute to an output, in an order that can run."""

import heapq
from collections.abc import Iterable, Iterator, Sequence

import onnx

from arenite.planner.errors import ModelFormatError
from arenite.planner.programs.program import Step


def ordered_nodes(graph: onnx.GraphProto) -> tuple[list[tuple[int, onnx.NodeProto]], int]:
    """Return the nodes that reach an output, each with its index, and how many do not.

    The order is that of the file if it can run; otherwise each node comes as early as
    its inputs allow.

    Raises:
        ModelFormatError: A tensor is written twice, or the nodes form a cycle.

    Cost: O(n log n) for n operands.
    """
    producers = _producers(graph)
    sources = [
        sorted({producers[name] for name in node_reads(node) if name in producers})
        for node in graph.node
    ]
    live = _live(sources, (producers[o.name] for o in graph.output if o.name in producers))
    order = list(_sorted(sources, live))
    if len(order) < len(live):
        stuck = graph.node[min(live.difference(order))]
        label = stuck.name or next(filter(None, stuck.output))
        raise ModelFormatError(f"the nodes form a cycle that includes or feeds {label!r}")
    nodes = [(index, graph.node[index]) for index in order]
    return nodes, len(graph.node) - len(nodes)


def node_reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node reads, including those its subgraphs capture."""
    yield from filter(None, node.input)
    for subgraph in subgraphs(node):
        yield from captured_names(subgraph)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _direct_subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def constant_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names of the graph's initialisers, dense and sparse."""
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)


def captured_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names that a subgraph reads from outside, in order of mention."""
    own = {value.name for value in graph.input}
    own.update(constant_names(graph))
    own.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        yield from (name for name in node_reads(node) if name not in own)
    yield from (output.name for output in graph.output if output.name not in own)


def _producers(graph: onnx.GraphProto) -> dict[str, int]:
    given = {value.name for value in graph.input}
    given.update(constant_names(graph))
    producers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in producers or name in given:
                raise ModelFormatError(f"tensor {name!r} is written twice")
            producers[name] = index
    return producers


def _live(sources: list[list[int]], roots: Iterable[int]) -> set[int]:
    live: set[int] = set()
    pending = list(roots)
    while pending:
        index = pending.pop()
        if index not in live:
            live.add(index)
            pending.extend(sources[index])
    return live


def _sorted(sources: list[list[int]], live: set[int]) -> Iterator[int]:
    waiting = {index: len(sources[index]) for index in live}
    readers: dict[int, list[int]] = {index: [] for index in live}
    for index in live:
        for source in sources[index]:
            readers[source].append(index)
    ready = [index for index, count in waiting.items() if not count]
    heapq.heapify(ready)
    while ready:
        index = heapq.heappop(ready)
        yield index
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)


def live_steps(steps: Sequence[Step], outputs: Iterable[str]) -> list[Step]:
    """Return the steps that contribute to one of the tensors `outputs`."""
    needed = set(outputs)
    live: list[Step] = []
    for step in reversed(steps):
        if not needed.isdisjoint(step.writes):
            live.append(step)
            needed.update(step.reads)
    return live[::-1]


def without_dead_nodes(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the node with the unused nodes of its subgraphs removed."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            _drop_dead_nodes(attribute.g)
    return copy


def captures(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the outer tensors that the subgraphs of a node read, without its own inputs."""
    found = (name for each in _direct_subgraphs(node) for name in captured_names(each))
    return tuple(dict.fromkeys(name for name in found if name not in node.input))


def _drop_dead_nodes(graph: onnx.GraphProto) -> None:
    nodes = [without_dead_nodes(node) for _, node in ordered_nodes(graph)[0]]
    read = {name for node in nodes for name in node_reads(node)}
    read.update(output.name for output in graph.output)
    weights = [each for each in graph.initializer if each.name in read]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.initializer[:]
    graph.initializer.extend(weights)
