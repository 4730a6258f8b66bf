"""Sizes of a range at which every step can run whole, in an arena that has room for bands alone.

Bands of rows are chosen for the highest sizes. At lower ones the same arena may hold all tensors
whole: they then lie closer together, and steps run in one turn each, as in a program for the size
alone. Between them and the highest, other bands may be better.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import Outcome, place
from arenite.pipeline.base.ranges import problem_at
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import Compiled, Lowered, lower_model, rules
from arenite.planner import Plan, Problem, Program, Strategy, TensorKind, derive
from arenite.planner.operators import Band
from arenite.planner.programs import COMPUTE
from arenite.planner.sizes import Dimension, Length, Size, Sizes, at
from arenite.runtime.operators import External
from arenite.runtime.rewrites import Kernels

_ATTEMPTS = 3
"""Highest sizes for which records are placed before none fits."""


def may_have_subranges(compiled: Compiled) -> bool:
    """Tell whether a program has bands that lower sizes may not need, and nothing to keep."""
    program = compiled.program
    return (
        bool(program.dimensions)
        and not any(each.counted_by or each.grows for each in program.dimensions)
        and compiled.streaming is None
        and program.system is None
        and any(isinstance(step.operator, Band) for step in program.steps)
        and not any(each.kind is TensorKind.STATE for each in program.tensors.values())
        and all(
            step.lane == COMPUTE and not isinstance(step.operator, External)
            for step in program.steps
        )
    )


def whole_within(
    model: Path,
    reading: Reading,
    whole: Problem,
    banded: Compiled,
    room: int,
    *,
    strategy: Strategy,
    kernels: Kernels,
) -> tuple[int, tuple[Compiled, Plan] | None]:
    """Return the program of the lower sizes at which every step runs whole, and its plan.

    Args:
        reading: How the model is read for all sizes.
        whole: The records if every step runs whole, at all sizes.
        banded: The program for all sizes.
        room: Bytes of its arena.

    Returns:
        The number of its highest sizes (`narrowed`), and it; None where there is none.

    Raises:
        PlanError: There is no plan.
    """
    index = _highest(whole, banded.program.dimensions, room)
    for lower in range(index, max(0, index - _ATTEMPTS), -1):
        part = narrowed(reading, banded.program, lower)
        if part is None:
            break
        compiled, outcome = _placed(
            lower_model(model, part, part_of=banded.program), part.limits, part.order_name,
            strategy,
        )  # fmt: skip
        if outcome.plan.height > room:
            continue
        compiled = replace(compiled, kernels=kernels, tuning=banded.tuning, room=room)
        return lower, compiled.tiled(outcome.plan)
    return 0, None


def middle_above(index: int, dimensions: Sequence[Dimension]) -> int:
    """Return the number of the sizes in the middle between some and the highest."""
    return (index + max(map(len, dimensions)) - 1) // 2


def narrowed(reading: Reading, program: Program, index: int) -> Reading | None:
    """Return how the model is read for sizes up to some that are not the highest.

    Args:
        reading: How it is read for all sizes.
        program: The program for all sizes.
        index: Number of the highest of them, all dimensions growing together from 0, the lowest.

    Returns:
        None if a dimension would have one value.
    """
    highest = _along(program.dimensions, index)
    if any(highest[each.name] == each.low for each in program.dimensions):
        return None

    def lower(length: Length) -> Length:
        if isinstance(length, Dimension):
            return replace(length, high=highest.get(length.name, length.high))
        if isinstance(length, Size):
            return Size.of(length.expression, at(length, highest))
        return length

    def lower_axis(length: Length, used: int) -> Length:
        if isinstance(length, Dimension):  # the file may name the axis, whose range --shape gives
            return replace(length, high=at(used, highest))
        return lower(length)

    shapes = dict(reading.shapes)
    for port in program.inputs:
        if port.name in shapes:
            used = port.shape(program.tensors[port.tensor].shape)
            shapes[port.name] = tuple(map(lower_axis, shapes[port.name], used))
    dims = {name: lower(each) for name, each in reading.dims.items()}
    return replace(reading, dims=dims, shapes=shapes)


def _placed(
    lowered: Lowered, limits: SearchLimits, order_name: str | None, strategy: Strategy
) -> tuple[Compiled, Outcome]:
    order = order_finder(order_name or "best", limits)
    found = lowered.ahead(derive(lowered.program, rules(), order), rules())
    return lowered.compiled(found), place(strategy, found.problem, limits)


def _highest(whole: Problem, dimensions: Sequence[Dimension], room: int) -> int:
    """Return the number of the highest sizes, below the last, that may fit; 0 if none do."""
    low, high = 0, max(map(len, dimensions)) - 2
    while low < high:
        middle = (low + high + 1) // 2
        if problem_at(whole, _along(dimensions, middle)).lower_bound <= room:
            low = middle
        else:
            high = middle - 1
    return max(low, 0)


def _along(dimensions: Sequence[Dimension], index: int) -> Sizes:
    """Return sizes from the lowest on, all dimensions growing together."""
    last = max(map(len, dimensions)) - 1
    return {each.name: each.values[(len(each) - 1) * index // last] for each in dimensions}
