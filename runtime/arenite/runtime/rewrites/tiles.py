"""Compute convolutions after Winograd, where that is quicker and working memory is free.

Convolutions without tiles, and products with weights, are made by sums of weights, with which
64-bit ARM takes seven products in place of eight, after Strassen. They get working memory where it
is free, too.

A convolution by tiles takes fewer multiplications and more working memory, which lies in the arena
while the step runs and at no other time: in a gap that the plan has there anyway. So plans and
their heights are the same with and without. Results differ from those of the direct kernel by
rounding.

The table has classes of layers, and the speed of each kernel on one processor; instructions on ARM
count as much. `python -m bench run convolution-speeds` measures it;
`arenite build --tune` measures the kernels of one model on this machine.
"""

import math
import platform
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from arenite.planner import Plan, Problem, Program, Step, UsageRecord
from arenite.planner.operators import Operands
from arenite.planner.programs import Names
from arenite.planner.sizes import MOST_POINTS, Expression, bounds, depends, every_value, smallest
from arenite.planner.units import align_up
from arenite.runtime.operators.base import PANEL
from arenite.runtime.operators.convolution import MOST_TILE_ELSEWHERE, Conv2D, Winograd
from arenite.runtime.operators.linear import FullyConnected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIRECT = 0
"""In place of a tile: the direct kernel."""
TILES = (2, 4, 6)
"""Rows and columns of tiles; processors other than 64-bit ARM take 4 in place of 6."""
TILES_HERE = tuple(
    tile
    for tile in TILES
    if tile <= MOST_TILE_ELSEWHERE or platform.machine() in {"aarch64", "arm64"}
)
"""Those that this processor takes."""

Speeds: TypeAlias = Mapping[tuple[int, int], tuple[float, float, float]]
"""By channels and by rows of image and result, at least: thousand millions of multiply-adds a
second, as the direct kernel counts them, directly and by tiles of 2 and of 4."""

PROCESSOR = "AMD EPYC"
"""The processor of `SPEEDS`: one core with AVX-512."""

SPEEDS: Speeds = MappingProxyType(
    {
        (16, 7): (24.4, 24.0, 24.1),
        (16, 14): (57.0, 62.3, 67.1),
        (16, 28): (82.4, 100.9, 142.7),
        (16, 56): (91.3, 119.1, 184.0),
        (32, 7): (63.4, 63.3, 65.7),
        (32, 14): (94.0, 127.0, 141.1),
        (32, 28): (107.1, 167.5, 235.7),
        (32, 56): (106.8, 173.7, 258.6),
        (64, 7): (94.0, 100.0, 100.7),
        (64, 14): (110.4, 173.4, 184.7),
        (64, 28): (112.1, 199.9, 282.2),
        (64, 56): (106.5, 189.8, 295.8),
        (128, 7): (106.9, 108.7, 97.9),
        (128, 14): (111.3, 179.0, 200.3),
        (128, 28): (108.5, 207.9, 303.4),
        (128, 56): (107.5, 201.5, 291.0),
        (256, 7): (104.3, 114.1, 97.7),
        (256, 14): (111.1, 182.7, 198.4),
        (256, 28): (111.9, 194.1, 273.9),
        (256, 56): (111.9, 202.6, 260.9),
        (512, 7): (101.5, 92.0, 70.2),
        (512, 14): (106.9, 150.1, 159.0),
        (512, 28): (109.0, 167.9, 240.6),
        (512, 56): (108.2, 173.4, 192.1),
    }
)
"""Measured by processor time, medians of 9 interleaved rounds; other work ran on the machine."""

_WORTH_IT = 1.05
"""Least gain in speed that is worth different rounding."""
_FEWEST_PIXELS = 100
"""Fewer are computed directly on x86-64, unless it is tuned for."""
_LEFT_BY_SUMS = 7 / 8
"""Of the instructions of a direct kernel, by Strassen's sums of weights."""


def quickest_first(
    inputs: int, outputs: int, rows: int, columns: int, kernel: tuple[int, int] = (3, 3),
    speeds: Speeds | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return the direct kernel and tiles, the quickest first.

    Files are read by any processor: the gain of a tile is the mean of that in `speeds` and that in
    instructions on ARM. Filters other than 3 x 3 and small images have tiles on ARM alone.

    Args:
        inputs: Channels of the image.
        outputs: Channels of the result: where they are few, panels are not full.
        rows: Rows of the result.
        columns: Columns of the result.
        kernel: Rows and columns of the filter.
        speeds: Speeds of a processor with filters of 3 x 3; `SPEEDS` by default.
    """

    def instructions(tile: int) -> float:
        return _instructions(Winograd(tile, kernel, inputs, outputs, rows, columns))

    if kernel != (3, 3):
        least = _LEFT_BY_SUMS * instructions(DIRECT) / _WORTH_IT
        return (*(each for each in Winograd.sizes(kernel) if instructions(each) < least), DIRECT)
    table = SPEEDS if speeds is None else speeds
    channels, length = min(inputs, outputs), min(rows, columns)
    classes = [key for key in table if key[0] <= channels and key[1] <= length]
    if not classes:
        return (DIRECT,)
    direct, *tiled = table[max(classes)]
    directly = instructions(DIRECT)
    gains = {tile: directly / instructions(tile) for tile in TILES}
    if rows * columns >= _FEWEST_PIXELS:
        for tile, speed in zip(TILES, (*tiled, tiled[-1]), strict=True):
            gains[tile] = math.sqrt(speed / direct * gains[tile])
    quicker = [tile for tile in TILES if gains[tile] > _WORTH_IT]
    return (*sorted(quicker, key=lambda tile: -gains[tile]), DIRECT)


def _instructions(layer: Winograd) -> float:
    """Return the instructions on ARM that a convolution takes, approximately, as counted."""
    weights = layer.inputs * align_up(layer.outputs, PANEL)
    if layer.tile == DIRECT:
        return 0.28 * math.prod(layer.kernel) * layer.rows * layer.columns * weights
    tiles = layer.tiles
    transforms = tiles * (3.2 * layer.inputs + 2.0 * layer.outputs) + 1.07 * weights
    # Weights are loaded for six tiles at a time. Sums of eight points are made in parts.
    products = (0.267 + 0.01 * (layer.num_points % 8 == 0)) * layer.products
    loads = 0.12 * layer.num_points * -(-tiles // 6)
    return (products + loads) * weights + layer.num_points * transforms


Prefer: TypeAlias = Callable[[Program, Step], tuple[int, ...]]
"""Returns the tiles that are quicker than the direct kernel, the quickest first."""

_THREADS = (8, 4, 2)
"""For which there may be working memory; the most for which there is room are chosen. With it for
one alone, a second thread would wait for longer than tiles save."""
_FEWEST_THREADS = _THREADS[-1]
"""For which there is working memory where the arena grows for it, or where there is little."""
_ALIGNMENT = 64
"""Bytes that sizes of records are rounded up to."""


class Kernels(StrEnum):
    """Kernels of convolutions."""

    DIRECT = "direct"
    """Those that need no working memory."""
    QUICK = "quick"
    """The quickest kernels whose working memory fits the arena without growth."""
    FASTEST = "fastest"
    """The quickest; the arena may grow."""


def by_table(program: Program, step: Step, speeds: Speeds | None = None) -> tuple[int, ...]:
    """Return the tiles that are quicker than the direct kernel by a table of speeds."""
    operands = program.operands(step)
    assert operands.source is not None
    assert operands.result is not None
    _, rows, columns, outputs = operands.result.shape
    found = quickest_first(
        operands.source.shape[3], outputs, rows, columns, _kernel(operands), speeds
    )
    return found[: found.index(DIRECT)]


def measured(seconds: Mapping[str, Mapping[int, float]]) -> Prefer:
    """Return a preference by measured seconds of each step and tile."""

    def prefer(program: Program, step: Step) -> tuple[int, ...]:
        times = seconds.get(step.name, {})
        found = sorted(times, key=lambda tile: (times[tile], tile))
        return tuple(found[: found.index(DIRECT)]) if DIRECT in found else ()

    return prefer


def with_tiles(
    program: Program,
    problem: Problem,
    plan: Plan,
    kernels: Kernels,
    prefer: Prefer = by_table,
    tuned: Prefer | None = None,
    room: int = 0,
) -> tuple[Program, Problem, Plan]:
    """Return a placed program with convolutions by tiles, their working memory in its gaps.

    Args:
        program: A program in its final order, its storage shared.
        problem: Its records.
        plan: A plan of these.
        kernels: Whether the arena may grow.
        prefer: Returns the quicker tiles.
        tuned: Returns the quicker tiles on the processor of the tuning; None without tuning. The
            working memory of a step is enough for either choice.
        room: Bytes that the arena may grow to where `kernels` does not let it grow.
    """
    if kernels is Kernels.DIRECT:
        return program, problem, plan
    memory = problem.memories[0]
    capacity = memory.capacity or sys.maxsize
    most_bytes = capacity if kernels is Kernels.FASTEST else min(room, capacity)
    steps = list(program.steps)
    lying: list[list[tuple[int, int]]] = [[] for _ in steps]
    for r in problem.rectangles(plan.offsets):
        if r.memory == memory.name:
            for at_step in lying[r.start : r.end]:
                at_step.append((r.offset, r.offset + r.size))

    def live(number: int) -> list[tuple[int, int]]:
        return sorted(lying[number])

    height = plan.heights[0]
    # Operators with the working memory that they need and the most of use.
    chosen_steps: dict[int, tuple[Conv2D | FullyConnected, int, int]] = {}
    for number, step in enumerate(steps):
        if not isinstance(step.operator, Conv2D | FullyConnected):
            continue
        gap = largest_gap(live(number), plan.heights[0])[1]
        top = align_up(max((end for _, end in live(number)), default=0), _ALIGNMENT)
        if takes_tiles(program, step):
            fitting = partial(_fitting, program, step, gap, most_bytes - top, kernels)
            chosen, needed = fitting(prefer(program, step))
            best, needed_here = fitting(() if tuned is None else tuned(program, step))
            needed = max(needed, needed_here)
            if needed:
                by_tiles = replace(chosen, tuned_tile=best.tile, tuned_threads=best.tile_threads)
                useful = by_tiles.most_scratch(program.operands(step))
                chosen_steps[number] = by_tiles, needed, useful
                height = height if needed <= gap else max(height, top + needed)
                continue
        least, useful = _sums(program, step)
        if useful and least <= gap:
            chosen_steps[number] = replace(step.operator, strassen=True), least, useful
    names = Names([*program.tensors, *(record.name for record in problem.records)])
    placed = list(zip(problem.records, plan.offsets, strict=True))
    for number, (operator, needed, useful) in chosen_steps.items():
        step = steps[number]
        offset, gap = largest_gap(live(number), height)
        size = max(needed, min(align_up(useful, _ALIGNMENT), gap // _ALIGNMENT * _ALIGNMENT))
        if size:
            record = UsageRecord(
                names.take(f"{step.name}/scratch"), size, number, number + 1, _ALIGNMENT,
                memory=memory.name,
            )  # fmt: skip
            placed.append((record, offset))
        if isinstance(operator, Conv2D):
            operator = _at_each_size(program, step, operator, size)
        steps[number] = replace(step, operator=replace(operator, tile_scratch=size))
    placed.sort(key=lambda each: each[0].start)
    tiled = replace(problem, records=tuple(record for record, _ in placed))
    return (
        replace(program, steps=tuple(steps)),
        tiled,
        replace(
            plan,
            offsets=tuple(offset for _, offset in placed),
            heights=(height, *plan.heights[1:]),
            lower_bounds=tuple(map(max, plan.lower_bounds, tiled.lower_bounds)),
        ),
    )


def _at_each_size(program: Program, step: Step, operator: Conv2D, scratch: int) -> Conv2D:
    """Return the operator with the tiles of each size of a range.

    They are those that the program for a size alone has, if working memory is enough. Where rows
    and columns depend on different dimensions, an image is taken for a square of its shorter side,
    with working memory for the longest other side.

    Args:
        program: The program.
        step: The step.
        operator: Its operator, with the tiles of the highest sizes.
        scratch: Bytes of working memory.
    """
    operands = program.operands(step)
    assert operands.source is not None
    assert operands.result is not None
    inputs, (_, rows, columns, outputs) = operands.source.shape[3], operands.result.shape
    kernel = _kernel(operands)
    names = Expression.of(rows).names | Expression.of(columns).names
    used = [each for each in program.dimensions if each.name in names]
    if not used or (len(used) == 1 and len(used[0]) > MOST_POINTS):
        return operator
    if len(used) == 1:
        variable, values = used[0].size, used[0].values
        points = every_value(used)
        images = list(zip(_lengths(rows, points), _lengths(columns, points), strict=True))
        largest = {image: [image] for image in images}
    else:
        variable = smallest(rows, columns)
        low, high = bounds(variable, used)
        values = range(low, high + 1)
        images = [(length, length) for length in values]
        longest = bounds(rows, used)[1], bounds(columns, used)[1]
        largest = {(each, each): [(longest[0], each), (each, longest[1])] for each in values}

    def has_room(tile: int, image: tuple[int, int], threads: int) -> bool:
        taken = Winograd.each(tile, kernel, inputs, outputs, *image)
        return all(each.least_scratch(threads) <= scratch for each in taken)

    def quickest(image: tuple[int, int], threads: int) -> int:
        for tile in quickest_first(inputs, outputs, *image, kernel):
            if tile == DIRECT:
                break
            if all(has_room(tile, each, threads) for each in largest[image]):
                return tile
        return DIRECT

    def sized(tile: int, threads: int) -> int:
        """Return tiles by size: those of the table where it has others than at the highest."""
        if tile == DIRECT:
            return tile
        by_image = {image: quickest(image, threads) for image in dict.fromkeys(images)}
        highest = by_image[images[-1]]
        chosen = [tile if by_image[each] == highest else by_image[each] for each in images]
        total = chosen[0]
        for value, one, other in zip(values[1:], chosen, chosen[1:], strict=False):
            if one != other:
                total += (other - one) * smallest(1, variable // value)
        return total

    return replace(
        operator,
        tile=sized(operator.tile, operator.tile_threads),
        tuned_tile=sized(operator.tuned_tile, operator.tuned_threads),
    )


def _lengths(length: int, points: Mapping[str, "NDArray[np.int64]"]) -> "list[int]":
    size = next(iter(points.values())).size
    found = Expression.of(length).evaluate(points)
    return [found] * size if isinstance(found, int) else found.tolist()


def largest_gap(live: list[tuple[int, int]], height: int) -> tuple[int, int]:
    """Return the first byte and the size of the largest gap between live records."""
    best, end = (0, 0), 0
    for first, last in [*live, (height, height)]:
        start = align_up(end, _ALIGNMENT)
        best = max(best, (start, first - start), key=lambda gap: gap[1])
        end = max(end, last)
    return best


def all_by(program: Program, tile: int) -> Program:
    """Return the program with such tiles wherever they can be, for one thread: to measure them.

    They are those of the table and those of the processor that the program is tuned on, as others
    compute small images directly.
    """
    if tile == DIRECT:
        return program
    steps = (
        replace(step, operator=replace(step.operator, tile=tile, tuned_tile=tile))
        if isinstance(step.operator, Conv2D)
        and tile in step.operator.tiles(program.operands(step))
        else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def num_by_tile(program: Program, *, tuned: bool = False) -> dict[int, int]:
    """Return how many convolutions have tiles of each size; none that no step has.

    Args:
        program: A program.
        tuned: Count what runs on the processor that it is tuned on, instead of on others.
    """
    convolutions = (step.operator for step in program.steps if isinstance(step.operator, Conv2D))
    tiles = (each.tuned_tile if tuned else each.tile for each in convolutions)
    return dict(sorted(Counter(tile for tile in tiles if tile).items()))


def steps_by_tiles(program: Program) -> frozenset[str]:
    """Return the names of the steps that run by tiles, on any processor."""
    return frozenset(
        step.name
        for step in program.steps
        if isinstance(step.operator, Conv2D) and (step.operator.tile or step.operator.tuned_tile)
    )


def has_slower_tiles(program: Program, other: Program) -> bool:
    """Tell whether a convolution runs by slower tiles than its namesake in another program.

    Args:
        program: A program with its kernels chosen.
        other: Another of the same model.
    """

    def ranks(given: Program) -> dict[str, int]:
        found = {}
        for step in given.steps:
            if isinstance(step.operator, Conv2D) and takes_tiles(given, step):
                found[step.name] = (*by_table(given, step), DIRECT).index(step.operator.tile)
        return found

    others = ranks(other)
    return any(rank > others.get(name, rank) for name, rank in ranks(program).items())


def takes_tiles(program: Program, step: Step) -> bool:
    """Tell whether a step can be computed by tiles."""
    operator = step.operator
    return isinstance(operator, Conv2D) and bool(operator.tiles(program.operands(step)))


def _kernel(operands: Operands) -> tuple[int, int]:
    """Return the rows and columns of a packed filter."""
    weights = operands.input(1)
    assert weights is not None
    return weights.shape[1], weights.shape[2]


_MOST_SUM_BYTES = 5 << 19
"""Sums of weights that stay in the second cache."""
_STACK_SUM_BYTES = 1 << 18
"""Those that the kernel has room for by itself."""


def _sums(program: Program, step: Step) -> tuple[int, int]:
    """Return the least working memory for sums of weights, and the most of use.

    The most is 0 where they are not worth it.

    By instructions on ARM for four results, approximately, as counted: sums save an eighth of the
    multiply-adds. They take some for results, for weights, and for pixels, which are packed again
    for each part of the sums that there is room for.
    """
    operator, operands = step.operator, program.operands(step)
    weights, result = operands.input(1), operands.result
    assert isinstance(operator, Conv2D | FullyConnected)
    groups = operator.groups if isinstance(operator, Conv2D) else 1
    if weights is None or result is None or groups > 1 or any(map(depends, result.shape)):
        return 0, 0
    bytes_of_pair, pairs = operator.sum_scratch(operands)
    if not pairs:
        return 0, 0
    depth, pixels = math.prod(weights.shape[1:-1]), math.prod(result.shape[1:-1])
    summings = math.ceil(depth / operator.SUMMED_DEPTH)
    saved = 0.11 * depth - 8 * summings - 1.5 * depth / max(pixels, 1)
    parts = int((saved * result.shape[-1] / depth + 1.6) / 3.8)
    if saved <= 0 or parts == 0:
        return 0, 0
    most = min(pairs, max(_MOST_SUM_BYTES // bytes_of_pair, 1))
    least = -(-pairs // parts)
    if least * bytes_of_pair <= _STACK_SUM_BYTES:
        return 0, most * bytes_of_pair
    return (least * bytes_of_pair, most * bytes_of_pair) if least <= most else (0, 0)


def _fitting(
    program: Program, step: Step, gap: int, most: int, kernels: Kernels, tiles: Sequence[int]
) -> tuple[Conv2D, int]:
    """Return the operator by the first tiles that fit, and the bytes that it needs.

    It is for as many threads as there is room for. If no tiles fit, it is the direct one and needs
    nothing.

    Args:
        gap: Bytes that are free in the arena.
        most: Bytes that are free if it grows.
        kernels: Whether it grows rather than that tiles take more time in less working memory.
    """
    operator, operands = step.operator, program.operands(step)
    assert isinstance(operator, Conv2D)

    def enough(tile: int, threads: int) -> int:
        by_tiles = replace(operator, tile=tile, tile_threads=threads)
        return align_up(by_tiles.scratch(operands), _ALIGNMENT)

    grown = enough(operator.tiles(operands)[0], _FEWEST_THREADS)
    for tile in tiles:
        threads = next((each for each in _THREADS if enough(tile, each) <= gap), _FEWEST_THREADS)
        by_tiles = replace(operator, tile=tile, tile_threads=threads)
        least = align_up(by_tiles.least_scratch(operands), _ALIGNMENT)
        wanted = enough(tile, threads)
        if gap < wanted <= most and kernels is Kernels.FASTEST:
            return by_tiles, wanted
        if least <= gap:
            return by_tiles, least
        if least <= most:
            return by_tiles, grown if least <= grown <= most else least
    return operator, 0
