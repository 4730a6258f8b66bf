"""Let convolutions add to their result what a step after them would.

A sum of a convolution and another tensor, as at the end of a residual block, becomes a part of the
convolution: its result is stored once and not read again, and one tensor less is live.
"""

import math
from collections import Counter
from dataclasses import replace

from arenite.planner.dtypes import DType
from arenite.planner.program import Program, Step
from arenite.planner.tensors import TensorKind
from arenite.runtime.operators.convolution import Convolution
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.rewrites.unread import without_unread


def fuse_sums(program: Program) -> Program:
    """Return the program with every sum in the convolution that can make it.

    The convolution moves to where the sum was. Of two that could, the later one takes the sum.
    """
    private = _read_once(program)
    steps: list[Step | None] = []
    makers: dict[str, int] = {}
    for step in program.steps:
        made = [
            makers[name]
            for name in step.inputs
            if name in private and name in makers and _is_open(steps[makers[name]])
        ]
        if made and _is_sum(program, step):
            step = _with_addend(steps[max(made)], step)
            steps[max(made)] = None
        makers.update(dict.fromkeys(step.outputs, len(steps)))
        steps.append(step)
    return without_unread(replace(program, steps=tuple(step for step in steps if step)))


def _with_addend(conv: Step | None, total: Step) -> Step:
    """Return the convolution that makes the sum of its result and another tensor."""
    assert conv is not None
    assert isinstance(conv.operator, Convolution)
    assert isinstance(total.operator, Binary)
    (addend,) = (name for name in total.inputs if name != conv.outputs[0])
    operator = replace(conv.operator, min=total.operator.min, max=total.operator.max)
    left_out = ("",) * (Convolution.ADDEND - len(conv.inputs))
    return Step(conv.name, operator, (*conv.inputs, *left_out, addend), total.outputs)


def _read_once(program: Program) -> frozenset[str]:
    """Return the tensors that one step reads, once, and nobody else."""
    reads = Counter(name for step in program.steps for name in step.inputs if name)
    viewed = {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    return frozenset(
        name
        for name, count in reads.items()
        if count == 1
        and name not in viewed
        and name not in program.output_tensors
        and program.tensors[name].alias is None
        and program.tensors[name].kind is TensorKind.ACTIVATION
    )


def _is_open(step: Step | None) -> bool:
    """Tell whether a step is a convolution that neither adds nor clamps yet."""
    return (
        step is not None
        and isinstance(step.operator, Convolution)
        and len(step.inputs) <= Convolution.ADDEND
        and (step.operator.min, step.operator.max) == (-math.inf, math.inf)
    )


def _is_sum(program: Program, step: Step) -> bool:
    """Tell whether a step adds two tensors of floats of the shape of their sum."""
    operator = step.operator
    if not isinstance(operator, Binary) or operator.function is not BinaryFunction.ADD:
        return False
    tensors = [program.tensors[name] for name in (*step.inputs, *step.outputs)]
    return (
        len(set(step.inputs)) == 2
        and {each.dtype for each in tensors} == {DType.FLOAT32}
        and len({each.shape for each in tensors}) == 1
        and all(each.kind is not TensorKind.CONSTANT for each in tensors)
    )
