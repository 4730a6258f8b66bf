"""A step run whole, and run in bands of rows that lie anywhere: the same bits."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from support.one_step import Given
from support.row_programs import bands_of, program_by_rows
from support.running import PoisonedSession

QUANTISED: dict[str, dict[str, Any]] = {
    "int8": {"scales": (0.05,), "zero_point": 3},
    "uint8": {"scales": (0.05,), "zero_point": 120},
}
"""How images of bytes stand for numbers."""


def image(*shape: int, dtype: str = "float32") -> Given:
    """Return an operand 1, rows, columns, channels."""
    return Given((1, *shape), dtype, **QUANTISED.get(dtype, {}))


def filled(given: Given, draw: np.random.Generator) -> np.ndarray:
    """Return an array for an operand."""
    if given.type == "float32":
        return draw.normal(0, 3, given.shape).astype(np.float32)
    if given.type == "bool":
        return draw.integers(0, 2, given.shape).astype(bool)
    limits = np.iinfo(given.type)
    low, high = max(limits.min, -1000), min(limits.max, 1000)
    return draw.integers(low, high + 1, given.shape).astype(given.type)


def assert_bands_make_the_whole(
    kind: str,
    kernel: Mapping[str, Any],
    inputs: Sequence[Given | None],
    output: Given,
    *,
    seed: int = 0,
    rows: int | None = None,
    threads: int = 1,
    **options: Any,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Compare results to the bit, and return what was fed and made.

    Args:
        kind: The operator.
        kernel: Its fields, as the schema has them.
        inputs: None where one is left out.
        output: What is made.
        seed: Of inputs, bands, and places.
        rows: Rows that turns count; None: those of the output.
        threads: Of a session.
        options: Of `program_by_rows`.
    """
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed)
    feeds = {
        f"i{i}": filled(each, numbers)
        for i, each in enumerate(inputs)
        if each is not None and each.array is None
    }
    results = []
    for bands in (None, bands_of(rows or output.shape[1], draw)):
        data = program_by_rows(kind, kernel, inputs, output, bands=bands, draw=draw, **options)
        with PoisonedSession([data], threads=threads) as session:
            results.append(session.run(dict(feeds))["y"])
    whole, banded = results
    assert whole.tobytes() == banded.tobytes()
    return feeds, whole
