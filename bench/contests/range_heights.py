"""The arena of a program for a range of sizes, beside that of its highest size alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import onnx

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_model
from arenite.planner.sizes import Dimension
from bench.harness.contest import Asked, Row, contest, option
from bench.zoo.classic import densenet121, inception_v3, resnet50, unet
from bench.zoo.edge import bert_layers, efficientnet_b0, mobilenet_v3, yolov8n
from bench.zoo.mediapipe import blazeface
from bench.zoo.mobilenets import mobilenet_v1, mobilenet_v2
from bench.zoo.opened import opened
from bench.zoo.sequences import espcn, recurrent, temporal, vocoder

_HEIGHTS = "Arenas for a range of sizes"

_HIGHEST: Mapping[str, tuple[Callable[[int], onnx.ModelProto], Dimension]] = {
    "MobileNet v1": (mobilenet_v1, Dimension("pixels", 32, 224, 32)),
    "MobileNet v2": (mobilenet_v2, Dimension("pixels", 32, 224, 32)),
    "MobileNet v3": (mobilenet_v3, Dimension("pixels", 32, 224, 32)),
    "EfficientNet-B0": (efficientnet_b0, Dimension("pixels", 32, 224, 32)),
    "ResNet-50": (resnet50, Dimension("pixels", 32, 224, 32)),
    "DenseNet-121": (densenet121, Dimension("pixels", 32, 224, 32)),
    "Inception v3": (inception_v3, Dimension("pixels", 107, 299, 32)),
    "U-Net": (unet, Dimension("pixels", 64, 256, 16)),
    "ESPCN": (espcn, Dimension("pixels", 16, 224)),
    "BlazeFace": (blazeface, Dimension("pixels", 64, 256, 32)),
    "YOLOv8n's layers": (yolov8n, Dimension("pixels", 64, 640, 32)),
    "BERT-mini": (bert_layers, Dimension("tokens", 1, 256)),
    "temporal convolutions": (temporal, Dimension("samples", 800, 8000, 8)),
    "vocoder": (vocoder, Dimension("frames", 1, 64)),
    "LSTM, both directions": (
        partial(recurrent, "LSTM", "bidirectional", 128),
        Dimension("frames", 1, 200),
    ),
}
"""Networks of the zoo, by their sizes, and ranges of these."""


@contest(
    {_HEIGHTS: {"model": "", "range": "", "whole, B": "", "the highest alone, B": "",
                "built, B": "", "the highest alone, built, B": ""}},
    rounds=None,
    options=[
        option("--case", metavar="TEXT", help="only networks whose name contains it"),
    ],
)  # fmt: skip
def range_heights(asked: Asked) -> Iterator[Row]:
    """The arena of a range of sizes beside that of its highest size alone.

    By steps that run whole, and as `build` makes it, in bands of rows where these cost nothing.
    """
    for label, (network, dimension) in _HIGHEST.items():
        if asked.given.case is not None and asked.given.case not in label:
            continue
        path = asked.folder / "open.onnx"
        other = dimension.high - 2 * dimension.step
        onnx.save(opened(network, dimension.high, other, dimension.name), path)
        heights = [
            build_model(path, Reading(dims={dimension.name: size}), is_whole=is_whole).arena_bytes
            for is_whole in (True, False)
            for size in (dimension, dimension.high)
        ]
        for height, least in (heights[:2], heights[2:]):
            asked.require(height <= least, f"{label}: no more than the highest size alone")
        yield {
            "model": label, "range": str(dimension), "whole, B": heights[0],
            "the highest alone, B": heights[1], "built, B": heights[2],
            "the highest alone, built, B": heights[3],
        }  # fmt: skip
