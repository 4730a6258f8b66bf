"""PoseNet: MobileNet v1 at 0.75 width, output stride 16, with the multi-person heads.

The last two blocks keep stride 1 and 384 channels, as in the public checkpoints at 0.75;
the heads are those of the TFLite model multi_person_mobilenet_v1_075_float. That file was
not at hand: its outputs and its 5.0 MB of weights agree with what is built here.

Source: Papandreou et al. 2018, arXiv 1803.08225; the backbone in `zoo.mobilenet_v1`.
"""

import onnx

from bench.zoo import mobilenet_v1
from bench.zoo.builder import NetworkBuilder

NUM_KEYPOINTS = 17
NUM_EDGES = 16


def network(height: int = 353, width: int = 257) -> onnx.ModelProto:
    """Return the pose network for `height` x `width` pixels."""
    net = NetworkBuilder(f"posenet_0.75_{height}x{width}")
    image = net.input("image", 1, 3, height, width)
    blocks = (*mobilenet_v1.BLOCKS[:-2], (512, 1), (512, 1))
    x = mobilenet_v1.features(net, image, blocks, width=0.75)
    net.output(net.conv(x, NUM_KEYPOINTS), "heatmaps")
    net.output(net.conv(x, 2 * NUM_KEYPOINTS), "short_offsets")
    forward, backward = net.conv(x, 2 * NUM_EDGES), net.conv(x, 2 * NUM_EDGES)
    net.output(net.concat([forward, backward]), "mid_offsets")
    net.output(net.conv(x, 1), "segments")
    return net.build()
