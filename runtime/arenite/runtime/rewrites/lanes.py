"""Steps on a lane beside the computation: spills, fetches, and loads of weights.

Policies use the planner's operators to spill, fetch and round; `lower_moves` replaces them by the
operators of our runtime.

Streaming has each tile of weights loaded right before its use. Here the loads get a lane of their
own, and each begins as soon as the window before the last is read, so there are two at most::

    load    |-- w2 --|        |-- w3 --|        |-- w4 --|
    compute |---- uses w1 ----|---- uses w2 ----|---- uses w3 ----

A load goes ahead only past steps that have room for its window: a program takes no more than its
peak, or than a second window beside the steps that read one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from arenite.planner import Derivation, Problem, Program, Rules, Step
from arenite.planner import operators as planned
from arenite.planner.placement import load_spans
from arenite.planner.programs import COMPUTE
from arenite.planner.rewrites import records
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.movement import (
    Fetch,
    LoadWeights,
    PackBits,
    Spill,
    UnpackBits,
    Wait,
)

BESIDE = "moves"
"""The lane of our runtime that carries tensors beside the computation: one, for both ways."""


def lower_moves(program: Program) -> Program:
    """Return the program with its moves, waits and roundings as our runtime runs them.

    All bytes of a tensor are moved, even where a policy counted on compressing them.
    """
    steps = tuple(_lowered(step) for step in program.steps)
    return program if steps == program.steps else replace(program, steps=steps)


def _lowered(step: Step) -> Step:
    lane = COMPUTE if step.lane == COMPUTE else BESIDE
    operator: RuntimeOperator
    match step.operator:
        case planned.Spill():
            operator = Spill()
        case planned.Fetch():
            operator = Fetch()
        case planned.Wait():
            operator = Wait()
        case planned.Narrow() | planned.Widen():
            operator = Convert()
        case planned.Pack():
            operator = PackBits()
        case planned.Unpack():
            operator = UnpackBits()
        case _:
            return step
    return replace(step, operator=operator, lane=lane)


def loads_beside(program: Program) -> Program:
    """Return the program with its loads on a lane of their own, in the same order."""
    return _on_lane(program, BESIDE)


def loads_in_turn(program: Program) -> Program:
    """Return the program with its loads on the lane of the computing steps."""
    return _on_lane(program, COMPUTE)


def _on_lane(program: Program, lane: str) -> Program:
    steps = tuple(
        replace(step, lane=lane) if isinstance(step.operator, LoadWeights) else step
        for step in program.steps
    )
    return program if steps == program.steps else replace(program, steps=steps)


def derive_ahead(found: Derivation, rules: Rules, limit: int | None = None) -> Derivation:
    """Return a program with its loads as early as possible, and its records.

    Args:
        found: The program, its loads on a lane of their own, and its records.
        rules: Rules of the target.
        limit: As `load_ahead` takes it.
    """
    ahead = load_ahead(found.program, found.problem, limit)
    if ahead.steps == found.program.steps:
        return found
    order = found.order
    if order is not None:
        order = replace(order, steps=tuple(step.name for step in ahead.steps))
    return Derivation(ahead, records(ahead, rules), order)


def loads_as_in(found: Derivation, order: Sequence[str], rules: Rules) -> Derivation:
    """Return a program with its loads in the places of an order, and its records.

    An order that differs in anything else leaves the program as it is: its storage was shared for
    the order that it has.

    Args:
        found: The program and its records.
        order: Names of its steps.
        rules: Rules of the target.

    Raises:
        OrderError: Something would be read before it is loaded.
    """
    loads = {step.name for step in found.program.steps if _is_beside(step)}
    computing = [step.name for step in found.program.steps if step.name not in loads]
    if len(order) != len(found.program.steps) or computing != [
        name for name in order if name not in loads
    ]:
        return found
    program = found.program.reordered(order)
    return Derivation(program, records(program, rules), found.order)


def load_ahead(program: Program, problem: Problem, limit: int | None = None) -> Program:
    """Return the program with each load as early as there is room for its window.

    Args:
        program: Its steps in their final order, its loads on a lane of their own.
        problem: Its records.
        limit: Most bytes that are live at a step which a load goes past; None for as many as
            its steps take, or those that read windows with a second one.

    Cost: O(steps + operands + records log records).
    """
    sizes = {name: record.size for record in problem.records for name in record.tensors}
    last_reads = {name: index for index, step in enumerate(program.steps) for name in step.reads}
    windows = [step.outputs[0] for step in program.steps if _is_beside(step)]
    loads = _loads(problem)
    second = max((sizes[name] for name in windows), default=0)
    if limit is None:
        limit = max([*loads, *(loads[last_reads[name]] + second for name in windows)], default=0)
    before: defaultdict[int, list[Step]] = defaultdict(list)
    moved: set[str] = set()
    reads = [-1, -1]  # last ones of the two windows before
    earliest = 0
    for index, step in enumerate(program.steps):
        if not _is_beside(step):
            continue
        (window,) = step.outputs
        position = index
        earliest = max(earliest, reads[-2] + 1)
        while position > earliest and loads[position - 1] + sizes[window] <= limit:
            position -= 1
            loads[position] += sizes[window]
        before[position].append(step)
        moved.add(step.name)
        earliest = position  # loads stay in their order
        reads.append(last_reads[window])
    steps: list[Step] = []
    for index, step in enumerate(program.steps):
        steps += before[index]
        if step.name not in moved:
            steps.append(step)
    return replace(program, steps=tuple(steps))


def _is_beside(step: Step) -> bool:
    return step.lane != COMPUTE and isinstance(step.operator, LoadWeights)


def _loads(problem: Problem) -> list[int]:
    """Return the bytes that are live at each step."""
    loads = [0] * problem.num_steps
    for span in load_spans(problem.records):
        stop = min(span.end, problem.num_steps)
        loads[span.start : stop] = [span.load] * (stop - span.start)
    return loads
