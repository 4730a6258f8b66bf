"""Compute convolutions after Winograd, where that is quicker and working memory is free anyway.

A convolution by tiles takes fewer multiplications and more working memory, which lies in the arena
while the step runs and at no other time. So it costs nothing at a step whose load is less than
that of the step that needs the most. Results differ from those of the direct kernel by rounding.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from arenite.planner.derive import Derivation
from arenite.planner.problem import Problem, load_spans
from arenite.planner.program import Program, Step
from arenite.planner.units import align_up
from arenite.runtime.operators.convolution import Conv2D
from arenite.runtime.rewrites.tile_speeds import DIRECT, Speeds, quickest_first

Prefer: TypeAlias = Callable[[Program, Step], tuple[int, ...]]
"""Returns the tiles that are quicker than the direct kernel, the quickest first."""

_THREADS = (8, 4, 2, 1)
"""For which there may be working memory; the most for which there is room are chosen."""
_GROWN_THREADS = 2
"""For which there is working memory where the arena grows for it."""
_ALIGNMENT = 64
"""Bytes that sizes of records are rounded up to."""


class Kernels(StrEnum):
    """Which kernels compute convolutions."""

    DIRECT = "direct"
    """Those that need no working memory."""
    QUICK = "quick"
    """The quickest of those whose working memory finds room in the arena as it is."""
    FASTEST = "fastest"
    """The quickest; the arena may grow."""


def by_table(program: Program, step: Step, speeds: Speeds | None = None) -> tuple[int, ...]:
    """Return the tiles that are quicker than the direct kernel by a table of speeds."""
    operands = program.operands(step)
    assert operands.source is not None
    assert operands.result is not None
    _, rows, columns, outputs = operands.result.shape
    found = quickest_first(operands.source.shape[3], outputs, rows, columns, speeds)
    return found[: found.index(DIRECT)]


def measured(seconds: Mapping[str, Mapping[int, float]]) -> Prefer:
    """Return what prefers as it was measured: by step, the seconds by tile."""

    def prefer(program: Program, step: Step) -> tuple[int, ...]:
        times = seconds.get(step.name, {})
        found = sorted(times, key=lambda tile: (times[tile], tile))
        return tuple(found[: found.index(DIRECT)]) if DIRECT in found else ()

    return prefer


def with_tiles(
    program: Program, derivation: Derivation, kernels: Kernels, prefer: Prefer = by_table
) -> Program:
    """Return the program with convolutions by tiles.

    Args:
        program: A lowered program.
        derivation: Of this program: what is live at each step.
        kernels: Whether the arena may grow for it.
        prefer: Tells which tiles are quicker.
    """
    if kernels is Kernels.DIRECT:
        return program
    loads = _loads(derivation.problem)
    most = max(loads, default=0)
    chosen: dict[str, Step] = {}
    for number, step in enumerate(derivation.program.steps):
        if not takes_tiles(derivation.program, step):
            continue
        for tile in prefer(derivation.program, step):
            operator = _fitting(
                derivation.program, step, tile, most - loads[number], kernels is Kernels.FASTEST
            )
            if operator is not None:
                chosen[step.name] = replace(step, operator=operator)
                break
    if not chosen:
        return program
    steps = (
        replace(step, operator=chosen[step.name].operator) if step.name in chosen else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def all_by(program: Program, tile: int) -> Program:
    """Return the program with tiles wherever they can be, for one thread: to measure them."""
    if tile == DIRECT:
        return program
    steps = (
        replace(step, operator=replace(step.operator, tile=tile))
        if isinstance(step.operator, Conv2D) and takes_tiles(program, step)
        else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def num_by_tile(program: Program) -> dict[int, int]:
    """Return how many convolutions have tiles of each size; none that no step has."""
    tiles = (step.operator.tile for step in program.steps if isinstance(step.operator, Conv2D))
    return dict(sorted(Counter(tile for tile in tiles if tile).items()))


def takes_tiles(program: Program, step: Step) -> bool:
    """Tell whether a step can be computed by tiles."""
    return isinstance(step.operator, Conv2D) and step.operator.takes_tiles(program.operands(step))


def _fitting(program: Program, step: Step, tile: int, room: int, may_grow: bool) -> Conv2D | None:
    """Return the operator with working memory for as many threads as there is room for."""
    assert isinstance(step.operator, Conv2D)
    alignment = max(_ALIGNMENT, *(memory.alignment for memory in program.memories))
    for threads in _THREADS:
        operator = replace(step.operator, tile=tile, tile_threads=threads)
        if align_up(operator.scratch(program.operands(step)), alignment) <= room:
            return operator
    return replace(step.operator, tile=tile, tile_threads=_GROWN_THREADS) if may_grow else None


def _loads(problem: Problem) -> list[int]:
    """Return the bytes live in the first memory at each step; working memory lies there."""
    name = problem.memories[0].name
    loads = [0] * problem.num_steps
    for span in load_spans(record for record in problem.records if record.memory == name):
        loads[span.start : span.end] = [span.load] * (span.end - span.start)
    return loads
