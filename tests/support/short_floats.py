"""Arrays of 16-bit floats: rounded as a model file has them, and as constants of one step."""

import numpy as np
from numpy.typing import NDArray

from support.one_step import Given

KINDS = ("float16", "bfloat16")


def shortened(array: NDArray[np.float32], kind: str) -> NDArray[np.float32]:
    """Return the nearest floats of 16 bits, as 32-bit floats.

    Of bfloat16 they are those below, but the first, which is too small for float16.
    """
    if kind == "float16":
        return array.astype(np.float16).astype(np.float32)
    exact = (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    exact.flat[0] = 2.0**-40
    return exact


def stored(array: NDArray[np.float32], kind: str) -> Given:
    """Return a constant of 16-bit floats, of an array that these hold exactly."""
    if kind == "float16":
        return Given(array.shape, kind, array.astype(np.float16))
    words = (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return Given(array.shape, kind, words)
