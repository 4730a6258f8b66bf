"""What a convolution after Winograd needs, as the core counts it (kernels/convolution)."""

from arenite.planner.units import align_up
from arenite.runtime.operators.base import FLOAT_BYTES, PANEL

_PRODUCT_COLUMNS = 2 * PANEL
_MOST_FILTER_BYTES = 5 << 19
"""Of transformed panels of the filter, unless a few panels are more."""
_MANY_INPUTS = 256
"""From so many input channels on, twice as many tiles are made together."""


def winograd_scratch(tile: int, inputs: int, outputs: int, tiles: int, threads: int) -> int:
    """Return the bytes in which tiles are taken apart, and panels of the filter.

    Args:
        tile: Rows and columns of a tile.
        inputs: Channels of the image.
        outputs: Channels of the result.
        tiles: Tiles of the result.
        threads: Each has tiles of its own.
    """
    points = (tile + 2) ** 2
    most = 28 if inputs < _MANY_INPUTS else 56
    together = align_up(-(-tiles // -(-tiles // most)), 2)
    of_points = align_up(inputs, PANEL) * together + PANEL
    of_products = together * _PRODUCT_COLUMNS + PANEL
    panel = points * (inputs + 1) * PANEL
    least = 2 if tiles <= most else 4
    panels = min(max(_MOST_FILTER_BYTES // (FLOAT_BYTES * panel) // 2 * 2, least),
                 -(-outputs // PANEL))  # fmt: skip
    return FLOAT_BYTES * (panels * panel + threads * points * (of_points + of_products))
