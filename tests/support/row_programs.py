"""Programs of one step whose operands lie row by row, and the same step run whole."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arenite.planner.units import align_up
from arenite.runtime.program import Assembly, program_pieces
from support.one_step import Given
from support.running import PoisonedSession

_SLACK = 128
Band = tuple[int, int]
"""The first of some rows, and how many."""


def bands_of(rows: int, draw: random.Random) -> list[Band]:
    """Return rows cut into bands of random sizes, in order."""
    found, first = [], 0
    while first < rows:
        count = draw.randint(1, max(1, min(rows - first, rows // 2 + 1)))
        found.append((first, count))
        first += count
    return found


def program_by_rows(
    kind: str,
    kernel: Mapping[str, Any],
    inputs: Sequence[Given | None],
    output: Given,
    *,
    bands: Sequence[Band] | None = None,
    apart: Sequence[int] = (0,),
    gathers: bool = True,
    scratch: int | None = None,
    draw: random.Random,
) -> bytes:
    """Return the file of a program of one step; inputs are i0, i1, and the output is y.

    Args:
        kind: The operator.
        kernel: Its fields, as the schema has them.
        inputs: None where one is left out.
        output: What the caller reads.
        bands: The turns of the step; None: it runs whole, on operands that lie whole.
        apart: Positions of the inputs whose rows lie anywhere, where there are bands.
        gathers: Whether rows of the output lie anywhere too.
        scratch: Bytes of working memory.
        draw: Where rows lie.
    """
    tensors: list[dict[str, Any]] = []
    constants: list[tuple[int, np.ndarray]] = []
    ends = {"memory": 0, "weights": 0}

    def reserve(given: Given) -> dict[str, Any]:
        place = "memory" if given.array is None else "weights"
        offset = ends[place]
        if given.array is not None:
            constants.append((offset, np.ascontiguousarray(given.array)))
        ends[place] = align_up(offset + given.size, 64)
        return {"place": place, "offset": offset}

    def scatter(given: Given) -> dict[str, Any]:
        rows, item = given.shape[1], np.dtype(given.type).itemsize
        size = given.size // rows
        slots = list(range(rows))
        draw.shuffle(slots)
        pitch = align_up(size, item) + item * draw.randint(0, 3)
        begin = ends["memory"] + item * draw.randint(0, 5)
        ends["memory"] = align_up(begin + rows * pitch, 64)
        return {"place": "memory", "rows": [begin + slot * pitch for slot in slots]}

    def add(name: str, given: Given, place: Mapping[str, Any]) -> int:
        tensors.append({
            "name": name, "type": given.type if given.type != "bool" else "boolean",
            "shape": list(given.shape), "scales": list(given.scales),
            "zero_point": given.zero_point, **place,
        })  # fmt: skip
        return len(tensors) - 1

    steps: list[dict[str, Any]] = []
    read: list[int] = []
    for i, given in enumerate(inputs):
        if given is None:
            read.append(-1)
            continue
        read.append(add(f"i{i}", given, reserve(given)))
        if bands is not None and i in apart and given.array is None:
            target = add(f"r{i}", given, scatter(given))
            steps.append(_copy(read[-1], target, given))
            read[-1] = target
    made = add("y", output, reserve(output))
    is_gathered = bands is not None and gathers
    result = add("r", output, scatter(output)) if is_gathered else made
    step: dict[str, Any] = {
        "name": "only", "kernel_type": kind, "kernel": dict(kernel), "inputs": read,
        "outputs": [result],
    }  # fmt: skip
    if scratch:
        place = reserve(Given((scratch,), "uint8"))
        step["scratch"] = add("scratch", Given((scratch,), "uint8"), place)
    only = len(steps)
    steps.append(step)
    if is_gathered:
        steps.append(_copy(result, made, output))
    turns = [
        {"step": i, "first": first, "count": count}
        for i in range(len(steps))
        for first, count in (bands if i == only and bands is not None else [(0, 0)])
    ]
    fed = [
        add_port(tensors, i, f"i{k}")
        for k, given in enumerate(inputs)
        if given is not None and given.array is None
        for i, each in enumerate(tensors)
        if each["name"] == f"i{k}"
    ]
    root: dict[str, Any] = {
        "name": kind, "digest": "0" * 64, "producer": "test",
        "memories": [{"name": "arena", "size": ends["memory"], "alignment": 64}],
        "weights_size": ends["weights"] + _SLACK,
        "tensors": tensors, "steps": steps, "turns": turns,
        "records": [{
            "name": "all", "memory": 0, "offset": 0, "size": ends["memory"], "start": 0,
            "end": len(turns),
        }],
        "inputs": fed, "outputs": [add_port(tensors, made, "y")],
    }  # fmt: skip
    assembly = Assembly(root, tuple(constants), root["weights_size"])
    return b"".join(program_pieces(assembly))


def add_port(tensors: list[dict[str, Any]], tensor: int, name: str) -> dict[str, Any]:
    """Return how the caller sees a tensor."""
    shape = tensors[tensor]["shape"]
    return {
        "name": name, "tensor": tensor, "shape": shape, "permutation": list(range(len(shape))),
    }  # fmt: skip


def _copy(source: int, target: int, given: Given) -> dict[str, Any]:
    rows, row = given.shape[1], math.prod(given.shape[2:])
    strides = [row, 1]
    move = {"shape": [rows, row], "input_strides": strides, "output_strides": strides}
    return {
        "name": f"copy{source}", "kernel_type": "Copy", "kernel": {"moves": [move]},
        "inputs": [source], "outputs": [target],
    }  # fmt: skip


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
    if given.type in ("float32", "float16"):
        return draw.normal(0, 3, given.shape).astype(given.type)
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
