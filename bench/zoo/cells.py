"""Cells of networks that were searched for or wired at random, where the order matters."""

import numpy as np
import onnx

from bench.zoo.builder import NetworkBuilder

GENOTYPE = (
    (("separable", 0), ("separable", 1)),
    (("separable", 0), ("separable", 1)),
    (("separable", 1), ("skip", 0)),
    (("skip", 0), ("dilated", 2)),
)
"""For each of the four nodes its two operations and what they read: 0 and 1 are the cell's
inputs, 2 and on the nodes."""


def darts(channels: int = 48, size: int = 28) -> onnx.ModelProto:
    """Return the cell on maps of `size` x `size`; its inputs come from two cells before.

    The normal cell that DARTS found, as used in the ImageNet network.

    Source: Liu et al. 2019, arXiv 1806.09055, figure 4 (the second-order genotype).
    """
    net = NetworkBuilder(f"darts_{channels}")
    states = [
        net.conv(net.activate(net.input(name, 1, 4 * channels, size, size), "relu"), channels)
        for name in ("before", "previous")
    ]
    for one, other in GENOTYPE:
        states.append(net.add(*(_operation(net, states[at], kind) for kind, at in (one, other))))
    net.output(net.concat(states[2:]), "y")
    return net.build()


def _operation(net: NetworkBuilder, x: str, kind: str) -> str:
    channels = net.shapes[x][1]
    if kind == "skip":
        return x
    if kind == "dilated":
        return net.conv(net.depthwise(net.activate(x, "relu"), dilation=2), channels)
    for _ in range(2):
        x = net.conv(net.depthwise(net.activate(x, "relu")), channels)
    return x


SWIFTNET_NODES = 20
SWIFTNET_CHANNELS = (4, 8, 16, 24, 32)


def swiftnet(size: int = 56, seed: int = 0) -> onnx.ModelProto:
    """Return a cell on maps of `size` x `size`.

    Cells like those of SwiftNet: branches of different widths that meet in concatenations.
    The searched cells for human presence detection are not public. These have what makes the
    order of theirs matter: pointwise and depthwise convolutions of few and of many channels, wired
    at random under a seed, each node reading one to three before it, joined by concatenation.

    Source: Cheng et al. 2019, arXiv 1906.08305; sizes as in Ahn et al. 2020, arXiv 2003.02369.
    """
    net = NetworkBuilder(f"swiftnet_{size}_{seed}")
    random = np.random.default_rng(seed)
    made = [net.input("x", 1, 8, size, size)]
    unread: dict[str, None] = {}
    for _ in range(SWIFTNET_NODES):
        count = min(len(made), int(random.integers(1, 4)))
        picked = [made[i] for i in sorted(random.choice(len(made), count, replace=False))]
        x = picked[0] if count == 1 else net.concat(picked)
        channels = int(random.choice(SWIFTNET_CHANNELS))
        y = net.depthwise(net.conv(x, channels, activation="relu"), activation="relu")
        for name in picked:
            unread.pop(name, None)
        unread[y] = None
        made.append(y)
    net.output(net.conv(net.concat(list(unread)), 16, activation="relu"), "y")
    return net.build()


RANDWIRE_NODES, NEIGHBOURS, REWIRING = 32, 4, 0.75


def randwire(channels: int = 78, size: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Return a cell on maps of `size` x `size` with so many channels.

    Randomly wired cells: where the order of operators decides the peak.
    A Watts-Strogatz graph of 32 nodes, 4 neighbours and rewiring probability 0.75, its edges
    directed from the smaller number to the larger. A node sums its inputs, applies ReLU and a
    separable convolution; nodes without inputs read the cell's, those nobody reads are summed.
    The wirings of the paper are not public: these are seeded.

    Source: Xie et al. 2019, arXiv 1904.01569, sections 3.2 and 3.3.
    """
    net = NetworkBuilder(f"randwire_{channels}_{seed}")
    image = net.input("x", 1, channels, 2 * size, 2 * size)
    sources = _sources(seed)
    made: list[str] = []
    for node in range(RANDWIRE_NODES):
        inputs = [made[source] for source in sources[node]]
        x = net.activate(net.sum(inputs or [image]), "relu")
        x = net.depthwise(x, 1 if inputs else 2)
        made.append(net.conv(x, channels))
    read = {source for each in sources for source in each}
    ends = [made[node] for node in range(RANDWIRE_NODES) if node not in read]
    net.output(net.activate(net.sum(ends), "relu"), "y")
    return net.build()


def _sources(seed: int) -> list[list[int]]:
    """Return for each node those it reads, in order."""
    random = np.random.default_rng(seed)
    edges: set[tuple[int, int]] = set()
    for hop in range(1, NEIGHBOURS // 2 + 1):
        for node in range(RANDWIRE_NODES):
            edges.add(_edge(node, (node + hop) % RANDWIRE_NODES))
    for hop in range(1, NEIGHBOURS // 2 + 1):
        for node in range(RANDWIRE_NODES):
            old = _edge(node, (node + hop) % RANDWIRE_NODES)
            if random.random() >= REWIRING or old not in edges:
                continue
            target = int(random.integers(RANDWIRE_NODES))
            while target == node or _edge(node, target) in edges:
                target = int(random.integers(RANDWIRE_NODES))
            edges.remove(old)
            edges.add(_edge(node, target))
    return [sorted(a for a, b in edges if b == node) for node in range(RANDWIRE_NODES)]


def _edge(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
