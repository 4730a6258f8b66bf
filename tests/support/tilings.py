"""Problems whose lowest plan is known, because they were cut from a full rectangle."""

import random

from arenite.planner.placement.problem import Problem, UsageRecord


def tiling(num_records: int, num_steps: int, height: int, seed: int = 0) -> Problem:
    """Return the pieces of a rectangle that was cut again and again, largest piece first.

    They fill the rectangle, so `height` is both the lower bound and the optimum.
    """
    rng = random.Random(seed)
    pieces = [(0, num_steps, height)]
    while len(pieces) < num_records:
        pieces.sort(key=lambda piece: (piece[1] - piece[0]) * piece[2])
        start, end, size = pieces.pop()
        if end - start > 1 and rng.random() < 0.5:
            cut = rng.randint(start + 1, end - 1)
            pieces += [(start, cut, size), (cut, end, size)]
        else:
            low = rng.randint(1, size - 1)
            pieces += [(start, end, low), (start, end, size - low)]
    rng.shuffle(pieces)
    return Problem(
        tuple(
            UsageRecord(f"piece {index}", size, start, end)
            for index, (start, end, size) in enumerate(pieces)
        )
    )
