"""Four networks as Deep Compression published them: shapes, densities, bits and sizes.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, tables 1 to 5.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from arenite.compression import mask_by_density, share


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A layer.

    Attributes:
        name: As the paper has it.
        shape: Outputs first.
        kept: Per cent of its weights.
        bits: Of a shared weight.
    """

    name: str
    shape: tuple[int, ...]
    kept: float
    bits: int

    @property
    def num_weights(self) -> int:
        """How many there are."""
        return int(np.prod(self.shape))

    def weights(self, seed: int) -> npt.NDArray[np.float32]:
        """Return normal random weights, pruned and shared as the layer was."""
        random = np.random.default_rng(seed)
        dense = random.standard_normal(self.shape, np.float32)
        mask = mask_by_density(dense, self.kept / 100)
        return share(dense, self.bits, mask=mask).restore()


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """A network.

    Attributes:
        rate: How many times smaller it was, in the paper.
        layers: In their order.
    """

    rate: float
    layers: tuple[PublishedLayer, ...]


def _layers(*rows: tuple[str, tuple[int, ...], float, int]) -> tuple[PublishedLayer, ...]:
    return tuple(PublishedLayer(*row) for row in rows)


PUBLISHED = {
    "LeNet-300-100": PublishedNetwork(
        40,
        _layers(
            ("ip1", (300, 784), 8, 6),
            ("ip2", (100, 300), 9, 6),
            ("ip3", (10, 100), 26, 6),
        ),
    ),
    "LeNet-5": PublishedNetwork(
        39,
        _layers(
            ("conv1", (20, 1, 5, 5), 66, 8),
            ("conv2", (50, 20, 5, 5), 12, 8),
            ("ip1", (500, 800), 8, 5),
            ("ip2", (10, 500), 19, 5),
        ),
    ),
    "AlexNet": PublishedNetwork(
        35,
        _layers(
            ("conv1", (96, 3, 11, 11), 84, 8),
            ("conv2", (256, 48, 5, 5), 38, 8),
            ("conv3", (384, 256, 3, 3), 35, 8),
            ("conv4", (384, 192, 3, 3), 37, 8),
            ("conv5", (256, 192, 3, 3), 37, 8),
            ("fc6", (4096, 9216), 9, 5),
            ("fc7", (4096, 4096), 9, 5),
            ("fc8", (1000, 4096), 25, 5),
        ),
    ),
    "VGG-16": PublishedNetwork(
        49,
        _layers(
            ("conv1_1", (64, 3, 3, 3), 58, 8),
            ("conv1_2", (64, 64, 3, 3), 22, 8),
            ("conv2_1", (128, 64, 3, 3), 34, 8),
            ("conv2_2", (128, 128, 3, 3), 36, 8),
            ("conv3_1", (256, 128, 3, 3), 53, 8),
            ("conv3_2", (256, 256, 3, 3), 24, 8),
            ("conv3_3", (256, 256, 3, 3), 42, 8),
            ("conv4_1", (512, 256, 3, 3), 32, 8),
            ("conv4_2", (512, 512, 3, 3), 27, 8),
            ("conv4_3", (512, 512, 3, 3), 34, 8),
            ("conv5_1", (512, 512, 3, 3), 35, 8),
            ("conv5_2", (512, 512, 3, 3), 29, 8),
            ("conv5_3", (512, 512, 3, 3), 36, 8),
            ("fc6", (4096, 25088), 4, 5),
            ("fc7", (4096, 4096), 4, 5),
            ("fc8", (1000, 4096), 23, 5),
        ),
    ),
}
