"""The normal cell that DARTS found, as used in the ImageNet network.

Source: Liu et al. 2019, arXiv 1806.09055, figure 4 (the second-order genotype).
"""

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


def network(channels: int = 48, size: int = 28) -> onnx.ModelProto:
    """Return the cell on maps of `size` x `size`; its inputs come from two cells before."""
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
