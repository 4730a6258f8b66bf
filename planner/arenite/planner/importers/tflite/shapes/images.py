"""Convolutions, pools, and images cut into blocks or brought to another size."""

import math

from arenite.planner.importers.tflite.shapes.resized import Resized, Shape, ShapesByCode, require
from arenite.planner.operators.windows import AutoPad, num_positions


def _window(r: Resized, kernel: tuple[int, int], channels: int) -> list[Shape]:
    require(len(r.source) == 4, f"its input has {len(r.source)} axes, not 4")
    strides, dilations = r.pair("strides"), r.pair("dilations")
    mode = AutoPad(str(r.attributes.get("auto_pad", AutoPad.VALID)))
    sizes = [
        num_positions(r.source[1 + axis], kernel[axis], strides[axis], dilations[axis], mode)
        if strides[axis] > 0
        else 0
        for axis in range(2)
    ]
    require(min(sizes) > 0, f"its window is larger than {r.source[1:3]}")
    return [(r.source[0], *sizes, channels)]


def _convolution(r: Resized) -> list[Shape]:
    weights = r.inputs[1]
    require(len(weights) == 4 and len(r.source) == 4, "its operands have not 4 axes")
    groups = r.source[3] % weights[3] if weights[3] else 1
    require(groups == 0, f"it reads {r.source[3]} channels, its filter has {weights[3]}")
    return _window(r, (weights[1], weights[2]), weights[0])


def _depthwise(r: Resized) -> list[Shape]:
    weights = r.inputs[1]
    require(len(weights) == 4 and len(r.source) == 4, "its operands have not 4 axes")
    require(
        bool(r.source[3]) and weights[3] % r.source[3] == 0,
        f"it reads {r.source[3]} channels, its filter has {weights[3]}",
    )
    return _window(r, (weights[1], weights[2]), weights[3])


def _pool(r: Resized) -> list[Shape]:
    return _window(r, r.pair("kernel_shape"), r.source[-1] if r.source else 0)


def _resize(r: Resized) -> list[Shape]:
    rows, columns = r.integers(1)
    require(len(r.source) == 4, f"its input has {len(r.source)} axes, not 4")
    return [(r.source[0], rows, columns, r.source[3])]


def _space_to_batch(r: Resized) -> list[Shape]:
    blocks, pads = r.integers(1), r.integers(2)
    axes = len(blocks)
    require(len(pads) == 2 * axes < 2 * len(r.source), "its blocks are for another rank")
    lengths = [r.source[1 + i] + pads[2 * i] + pads[2 * i + 1] for i in range(axes)]
    fits = all(block > 0 and n % block == 0 for n, block in zip(lengths, blocks, strict=True))
    require(fits, f"{tuple(lengths)} is not cut into blocks of {blocks}")
    spatial = [n // block for n, block in zip(lengths, blocks, strict=True)]
    return [(r.source[0] * math.prod(blocks), *spatial, *r.source[1 + axes :])]


def _batch_to_space(r: Resized) -> list[Shape]:
    blocks, crops = r.integers(1), r.integers(2)
    axes = len(blocks)
    require(len(crops) == 2 * axes < 2 * len(r.source), "its blocks are for another rank")
    count = math.prod(blocks)
    require(count > 0 and r.source[0] % count == 0, f"{r.source[0]} is no number of blocks")
    spatial = [r.source[1 + i] * blocks[i] - crops[2 * i] - crops[2 * i + 1] for i in range(axes)]
    require(min(spatial) >= 0, "it crops more than there is")
    return [(r.source[0] // count, *spatial, *r.source[1 + axes :])]


def _depth_to_space(r: Resized) -> list[Shape]:
    n, rows, columns, channels = r.source if len(r.source) == 4 else (0, 0, 0, -1)
    block = r.integer("BlockSize", 1)
    require(block > 0 and channels >= 0 and not channels % block**2, "its blocks do not fit")
    return [(n, rows * block, columns * block, channels // block**2)]


def _space_to_depth(r: Resized) -> list[Shape]:
    n, rows, columns, channels = r.source if len(r.source) == 4 else (0, -1, 0, 0)
    block = r.integer("BlockSize", 1)
    fits = block > 0 and rows >= 0 and not rows % block and not columns % block
    require(fits, "its blocks do not fit")
    return [(n, rows // block, columns // block, channels * block**2)]


IMAGES: ShapesByCode = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _pool),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
}
