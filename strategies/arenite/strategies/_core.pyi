from collections.abc import Sequence
from enum import Enum

class Fit(Enum):
    FIRST = ...
    BEST = ...
    BEST_TFLITE_CPU = ...
    TOP = ...

def place_in_order(
    starts: Sequence[int],
    ends: Sequence[int],
    sizes: Sequence[int],
    alignments: Sequence[int],
    fixed: Sequence[int],
    order: Sequence[int],
    fit: Fit,
) -> list[int]: ...
