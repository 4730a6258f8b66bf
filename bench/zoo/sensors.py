"""Networks of sensors over time that TinyDéjàVu runs (arXiv 2512.09786), by its authors' code.

Layers and windows are those of the folder `model` of github.com/zhaolanhuang/DeepSliding; weights
are seeded.
"""

import onnx

from bench.zoo.builder import NetworkBuilder
from bench.zoo.sequences import convolve


def heart_beats(samples: int = 101, leads: int = 3) -> onnx.ModelProto:
    """Return a network that finds heart beats in electrocardiograms, each lead on its own.

    The layers of all leads are one, in groups.

    Source: Hoog Antink et al. 2018, doi 10.22489/CinC.2018.143.
    """
    net = NetworkBuilder(f"heart_beats_{samples}")
    x = convolve(
        net, net.input("leads", 1, leads, samples), 10 * leads, 20, groups=leads, pads=False
    )
    x = _pool(net, x)
    for channels, kernel in ((20, 15), (25, 10), (30, 10)):
        x = convolve(net, x, channels * leads, kernel, groups=leads, pads=False)
    x = net.reshape(x, 1, net.shapes[x][1] * net.shapes[x][2])
    for units in (100, 40, 2):
        x = net.dense(x, units)
    net.output(x, "beats")
    return net.build()


def bird_song(samples: int = 48_000) -> onnx.ModelProto:
    """Return a network that hears a bird in samples of sound, and averages over the window.

    Source: TinyChirp, Huang et al. 2024, arXiv 2407.21453.
    """
    net = NetworkBuilder(f"bird_song_{samples}")
    x = net.activate(convolve(net, net.input("sound", 1, 1, samples), 4, 3, pads=False), "relu")
    x = convolve(net, _pool(net, x), 8, 3, pads=False)
    x = net.node("GlobalAveragePool", [x], (1, 8, 1))
    x = net.activate(net.dense(net.reshape(x, 1, 8), 64), "relu")
    net.output(net.dense(x, 2), "bird")
    return net.build()


def music(frames: int = 192, keys: int = 88) -> onnx.ModelProto:
    """Return a temporal convolutional network that predicts the keys of a piano, padded.

    Source: Bai et al. 2018, arXiv 1803.01271, of half the channels.
    """
    net = NetworkBuilder(f"music_{frames}")
    x = net.input("keys", 1, keys, frames)
    for level in range(4):
        y = x
        for _ in range(2):
            y = net.activate(convolve(net, y, 75, 5, dilation=2**level), "relu")
        x = x if net.shapes[x] == net.shapes[y] else convolve(net, x, 75, 1)
        x = net.activate(net.add(x, y), "relu")
    net.output(net.sigmoid(convolve(net, x, keys, 1)), "next")
    return net.build()


def _pool(net: NetworkBuilder, x: str) -> str:
    """Return the larger of each pair of samples."""
    *outer, length = net.shapes[x]
    return net.node("MaxPool", [x], (*outer, length // 2), kernel_shape=[2], strides=[2])
