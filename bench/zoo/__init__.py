"""Classic networks as ONNX, with seeded weights: real graphs that run, untrained."""

from collections.abc import Callable
from functools import partial

import onnx

from bench.zoo import (
    blazeface,
    darts,
    deeplab_v3,
    densenet121,
    inception_v3,
    mediapipe,
    mobilenet_v1,
    mobilenet_v2,
    posenet,
    randwire,
    resnet50,
    swiftnet,
    unet,
)

NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet-v1": mobilenet_v1.network,
    "mobilenet-v2": mobilenet_v2.network,
    "deeplab-v3": deeplab_v3.network,
    "inception-v3": inception_v3.network,
    "posenet": posenet.network,
    "blazeface": blazeface.network,
    "resnet50": resnet50.network,
    "densenet121": densenet121.network,
    "unet": unet.network,
    "mobilenet-v1-0.25-96": partial(mobilenet_v1.network, size=96, width=0.25, classes=2),
}
"""By name; the first six are those of Pisarchyk and Lee 2020, in their order."""

CELLS: dict[str, Callable[[], onnx.ModelProto]] = {
    "darts": darts.network,
    "swiftnet-a": partial(swiftnet.network, 56, seed=0),
    "swiftnet-b": partial(swiftnet.network, 28, seed=1),
    "swiftnet-c": partial(swiftnet.network, 14, seed=2),
    "randwire-78-a": partial(randwire.network, 78, seed=0),
    "randwire-78-b": partial(randwire.network, 78, seed=1),
    "randwire-156-a": partial(randwire.network, 156, size=8, seed=2),
    "randwire-156-b": partial(randwire.network, 156, size=8, seed=3),
    "randwire-312": partial(randwire.network, 312, size=4, seed=4),
}
"""Cells of networks that were searched for or wired at random, where the order matters."""

MEDIAPIPE: dict[str, Callable[[], onnx.ModelProto]] = {
    "palm-detection": mediapipe.palm_detection,
    "hand-landmark": mediapipe.hand_landmark,
    "face-mesh": mediapipe.face_mesh,
}
"""Networks of the kinds that MediaPipe publishes; BlazeFace is among the first."""

SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet-v2-0.35-144": partial(
        mobilenet_v2.network, size=144, classes=1000, width=0.35, divisor=8
    )
}
"""Networks for microcontrollers of which others publish figures."""
