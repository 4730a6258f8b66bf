"""How quickly the file takes and gives bytes that tensors are spilled to."""

import os
import tempfile
import time
from typing import IO

import numpy as np

from arenite.planner.costs import Link

_BLOCK = 1 << 24
_ROUNDS = 5


def measured_link() -> Link:
    """Return the speed of a temporary file where the runtime has its own.

    As in the runtime nothing is synchronised: what fits into the cache of the system moves at its
    speed. One lane does one transfer at a time.

    Raises:
        OSError: There is no room for such a file, or it cannot be written.
    """
    block = np.random.default_rng(0).integers(0, 256, _BLOCK, np.uint8)
    out, back = float("inf"), float("inf")
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR") or "/tmp", buffering=0) as stream:
        os.posix_fallocate(stream.fileno(), 0, _BLOCK)
        for _ in range(_ROUNDS):
            out = min(out, _seconds(stream, block, writes=True))
            back = min(back, _seconds(stream, block, writes=False))
    return Link(_BLOCK / out, _BLOCK / back, duplex=False)


def _seconds(stream: IO[bytes], block: np.ndarray, *, writes: bool) -> float:
    """Return the time in which the whole block is written or read."""
    call = os.pwritev if writes else os.preadv
    done = 0
    begun = time.perf_counter()
    while done < _BLOCK:
        some = call(stream.fileno(), [block.data[done:]], done)
        if some <= 0:
            raise OSError(f"it ends after {done} of {_BLOCK} B")
        done += some
    return time.perf_counter() - begun
