"""Randomly wired cells: where the order of operators decides the peak.

A Watts-Strogatz graph of 32 nodes, 4 neighbours and rewiring probability 0.75, its edges
directed from the smaller number to the larger. A node sums its inputs, applies ReLU and a
separable convolution; nodes without inputs read the cell's, those nobody reads are summed.
The wirings of the paper are not public: these are seeded.

Source: Xie et al. 2019, arXiv 1904.01569, sections 3.2 and 3.3.
"""

import numpy as np
import onnx

from bench.zoo.builder import NetworkBuilder

NODES, NEIGHBOURS, REWIRING = 32, 4, 0.75


def network(channels: int = 78, size: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Return a cell on maps of `size` x `size` with so many channels."""
    net = NetworkBuilder(f"randwire_{channels}_{seed}")
    image = net.input("x", 1, channels, 2 * size, 2 * size)
    sources = _sources(seed)
    made: list[str] = []
    for node in range(NODES):
        inputs = [made[source] for source in sources[node]]
        x = net.activate(net.sum(inputs or [image]), "relu")
        x = net.depthwise(x, 1 if inputs else 2)
        made.append(net.conv(x, channels))
    read = {source for each in sources for source in each}
    ends = [made[node] for node in range(NODES) if node not in read]
    net.output(net.activate(net.sum(ends), "relu"), "y")
    return net.build()


def _sources(seed: int) -> list[list[int]]:
    """Return for each node those it reads, in order."""
    random = np.random.default_rng(seed)
    edges: set[tuple[int, int]] = set()
    for hop in range(1, NEIGHBOURS // 2 + 1):
        for node in range(NODES):
            edges.add(_edge(node, (node + hop) % NODES))
    for hop in range(1, NEIGHBOURS // 2 + 1):
        for node in range(NODES):
            old = _edge(node, (node + hop) % NODES)
            if random.random() >= REWIRING or old not in edges:
                continue
            target = int(random.integers(NODES))
            while target == node or _edge(node, target) in edges:
                target = int(random.integers(NODES))
            edges.remove(old)
            edges.add(_edge(node, target))
    return [sorted(a for a, b in edges if b == node) for node in range(NODES)]


def _edge(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
