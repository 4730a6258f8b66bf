"""Keep sums of the rows of a window, where a step needs no more of them.

An average over all rows of a window needs their sum. Sums over groups of rows, as many as go into
the hop and into the window, are made as these come, and kept in their place::

    x      rows of a stream        x      rows of a stream
    mean   average of all          sums   of each group of rows
                                   mean   average of all, of their sums

Sums of bytes are exact, so the average is the same to the bit. Sums of floats would be added in
another order, so these stay rows.
"""

import math
from dataclasses import replace

from arenite.planner import Program, Step, TensorKind
from arenite.planner.programs import Names
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.operators.base import RuntimeOperator, SumsOfParts
from arenite.runtime.rewrites.hops import Decisions


def with_sums(program: Program, found: Decisions) -> Program:
    """Return a program whose steps take sums of the rows of the window where they can.

    Args:
        program: A lowered program.
        found: How it runs on the stream.
    """
    names, step_names = Names(program.tensors), Names(step.name for step in program.steps)
    tensors, steps = dict(program.tensors), list[Step]()
    for step in program.steps:
        parts = _parts(program, found, step)
        if parts is None:
            steps.append(step)
            continue
        source = step.inputs[0]
        sums = names.take(f"{source}/sums")
        tensors[sums] = replace(parts.sums, name=sums, kind=TensorKind.ACTIVATION, alias=None)
        name = step_names.take(f"{step.name}/sums")
        steps.append(Step(name, parts.operator, (source,), (sums,)))
        steps.append(replace(step, inputs=(sums,)))
    return replace(program, tensors=tensors, steps=tuple(steps))


def _parts(program: Program, found: Decisions, step: Step) -> SumsOfParts | None:
    """Return how a step takes sums of the rows of a stream, None if it does not."""
    if not isinstance(step.operator, RuntimeOperator) or len(step.inputs) != 1:
        return None
    if found.axes.get(step.inputs[0]) != ROW_AXIS:
        return None
    flow = found.flows.get(program.root(step.inputs[0])[0])
    if flow is None or flow.made != flow.hop or flow.front or flow.back:
        return None
    rows = math.gcd(flow.rows, flow.hop, flow.end)
    return step.operator.in_parts(program.operands(step), rows)
