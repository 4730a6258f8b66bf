"""Cells like those of SwiftNet: branches of different widths that meet in concatenations.

The searched cells for human presence detection are not public. These have what makes the
order of theirs matter: pointwise and depthwise convolutions of few and of many channels, wired
at random under a seed, each node reading one to three before it, joined by concatenation.

Source: Cheng et al. 2019, arXiv 1906.08305; sizes as in Ahn et al. 2020, arXiv 2003.02369.
"""

import numpy as np
import onnx

from bench.zoo.builder import NetworkBuilder

NODES = 20
CHANNELS = (4, 8, 16, 24, 32)


def network(size: int = 56, seed: int = 0) -> onnx.ModelProto:
    """Return a cell on maps of `size` x `size`."""
    net = NetworkBuilder(f"swiftnet_{size}_{seed}")
    random = np.random.default_rng(seed)
    made = [net.input("x", 1, 8, size, size)]
    unread: dict[str, None] = {}
    for _ in range(NODES):
        count = min(len(made), int(random.integers(1, 4)))
        picked = [made[i] for i in sorted(random.choice(len(made), count, replace=False))]
        x = picked[0] if count == 1 else net.concat(picked)
        channels = int(random.choice(CHANNELS))
        y = net.depthwise(net.conv(x, channels, activation="relu"), activation="relu")
        for name in picked:
            unread.pop(name, None)
        unread[y] = None
        made.append(y)
    net.output(net.conv(net.concat(list(unread)), 16, activation="relu"), "y")
    return net.build()
