"""Classic networks as ONNX, with seeded weights: real graphs that run, untrained."""

from collections.abc import Callable
from functools import partial

import onnx

from zoo import (
    blazeface,
    deeplab_v3,
    densenet121,
    inception_v3,
    mobilenet_v1,
    mobilenet_v2,
    posenet,
    resnet50,
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
