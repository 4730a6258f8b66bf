"""How quick convolutions of 3 x 3 are, directly and by tiles.

Classes of layers, and what each kernel reached on one processor; another is assumed to rank them
alike. `bench/convolution_speeds.py` measures the table. What is quickest on a machine is found out
by `arenite build --tune`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

DIRECT = 0
"""In place of a tile: the direct kernel."""
TILES = (2, 4)
"""Rows and columns of tiles."""

Speeds: TypeAlias = Mapping[tuple[int, int], tuple[float, float, float]]
"""By channels and by rows of image and result, at least: thousand millions of multiply-adds a
second, as the direct kernel counts them, directly and by tiles of 2 and of 4."""

PROCESSOR = "AMD EPYC"
"""Whose speeds these are: one core with AVX-512."""

SPEEDS: Speeds = MappingProxyType(
    {
        (16, 7): (14.0, 18.7, 18.0),
        (16, 14): (26.2, 44.0, 47.6),
        (16, 28): (34.8, 61.6, 88.9),
        (16, 56): (39.8, 71.2, 110.2),
        (32, 7): (28.8, 41.6, 46.6),
        (32, 14): (39.4, 73.6, 83.9),
        (32, 28): (42.7, 87.3, 127.9),
        (32, 56): (43.9, 85.0, 141.3),
        (64, 7): (38.4, 56.1, 65.7),
        (64, 14): (46.9, 90.6, 105.9),
        (64, 28): (49.8, 102.3, 154.2),
        (64, 56): (50.3, 101.5, 162.9),
        (128, 7): (45.5, 64.2, 71.2),
        (128, 14): (48.2, 88.8, 89.2),
        (128, 28): (49.4, 94.4, 134.9),
        (128, 56): (52.4, 104.0, 149.6),
        (256, 7): (51.9, 64.4, 67.6),
        (256, 14): (51.3, 84.2, 97.2),
        (256, 28): (51.2, 99.4, 142.4),
        (256, 56): (53.2, 103.8, 135.7),
        (512, 7): (49.4, 52.9, 43.2),
        (512, 14): (51.6, 90.3, 87.0),
        (512, 28): (52.3, 91.8, 143.1),
        (512, 56): (51.9, 93.0, 130.2),
    }
)
"""Measured by processor time, medians of 3 interleaved rounds; other work ran on the machine."""

_WORTH_IT = 1.05
"""Less is no reason to round differently."""


def quickest_first(
    inputs: int, outputs: int, rows: int, columns: int, speeds: Speeds | None = None
) -> tuple[int, ...]:
    """Return the direct kernel and tiles, the quickest first.

    Args:
        inputs: Channels of the image.
        outputs: Channels of the result: where they are few, panels are not full.
        rows: Of the result.
        columns: The same.
        speeds: Of a processor; by default those of `PROCESSOR`.
    """
    table = SPEEDS if speeds is None else speeds
    channels, length = min(inputs, outputs), min(rows, columns)
    classes = [key for key in table if key[0] <= channels and key[1] <= length]
    if not classes:
        return (DIRECT,)
    direct, *tiled = table[max(classes)]
    gains = dict(zip(TILES, tiled, strict=True))
    quicker = [tile for tile in TILES if gains[tile] > _WORTH_IT * direct]
    return (*sorted(quicker, key=lambda tile: -gains[tile]), DIRECT)
