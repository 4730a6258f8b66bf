"""Keep weights in 16 bits: those that a model has so, or all where they may be rounded.

The core converts a few panels of them at a time, or multiplies few rows with them as they lie.
"""

from collections import Counter
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from arenite.planner import Array, DType, Problem, Program, Step
from arenite.planner.units import align_up
from arenite.runtime.operators.convolution import Conv2D
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Gather

_ALIGNMENT = 64
"""Bytes that sizes of records are rounded up to."""
_FEW_VALUES = 256
"""Values that a codebook holds."""
_SAMPLE = 4096
"""Weights of which the values are counted."""
_WORTH_A_RISE = 16
"""Bytes that weights save for each one by which the largest load rises."""
_LOWER_HALF = np.uint32(0xFFFF)
_HALF_BITS = np.uint32(16)

ShortWeights: TypeAlias = dict[str, tuple[Array, DType]]
"""Constants in 16 bits by name, and their types; bfloat16 as words of 16 bits."""


def short_weights(
    program: Program, *, may_round: bool = False, most_rows: int | None = None
) -> ShortWeights:
    """Return the weights of convolutions and products, and the tables, that can be of 16 bits.

    Those that have so few values that coding stores them in less are not among them, nor those of
    which one would become infinite.

    Args:
        program: A program.
        may_round: Whether weights may be rounded to 16-bit floats of IEEE 754; otherwise only such
            are returned that are these, or bfloat16.
        most_rows: Rows of a product at most: weights that many rows share take longer to convert
            than it saves to read them. None for any number, and for convolutions too.

    Cost: O(weights).
    """
    uses = Counter(name for step in program.steps for name in step.inputs if name)
    taken = Counter(
        step.inputs[0 if isinstance(step.operator, Gather) else 1]
        for step in program.steps
        if _looks_up_floats(program, step)
        or (_may_have_short_filter(program, step) and _has_rows(program, step, most_rows))
    )
    found = {
        name: _shortened(program.constants[name], may_round)
        for name, count in taken.items()
        if count == uses[name]
    }
    return {name: each for name, each in found.items() if each is not None}


def keep_short_weights(program: Program, weights: ShortWeights) -> Program:
    """Return the program with these weights in 16 bits.

    The core converts a few panels of weights at a time, and the rows of a table that are looked
    up.

    Args:
        program: A program.
        weights: Some of its weights.

    Cost: O(tensors).
    """
    types = {
        name: replace(program.tensors[name], dtype=dtype) for name, (_, dtype) in weights.items()
    }
    arrays = {name: array for name, (array, _) in weights.items()}
    return replace(
        program, tensors={**program.tensors, **types}, constants={**program.constants, **arrays}
    )


def without_rise(program: Program, problem: Problem, weights: ShortWeights) -> ShortWeights:
    """Return the weights whose conversion does not raise the largest load.

    Those are among them for which it rises by little of what they save.

    Args:
        program: A program.
        problem: Its records, in the same order.
        weights: Some of its weights in 16 bits.

    Cost: O(records x their steps).
    """
    loads = np.zeros(len(program.steps) + 1, np.int64)
    for record in problem.records:
        loads[record.start : record.end] += record.size
    most = int(loads.max())
    halved = keep_short_weights(program, weights)
    raising: set[str] = set()
    for step, load in zip(program.steps, map(int, loads), strict=False):
        for name in weights.keys() & {*step.inputs}:
            more = _scratch(halved, step) - _scratch(program, step)
            rise = load + align_up(more, _ALIGNMENT) - most
            if rise * _WORTH_A_RISE > weights[name][0].nbytes:
                raising.add(name)
    return {name: each for name, each in weights.items() if name not in raising}


def _shortened(weights: Array, may_round: bool) -> tuple[Array, DType] | None:
    """Return weights in 16 bits and their type, None if they stay as they are."""
    sample = weights.ravel()[:_SAMPLE]
    if np.unique(sample).size <= _FEW_VALUES:
        return None
    if may_round or _are_halves(sample):
        with np.errstate(over="ignore"):
            rounded = weights.astype(np.float16)
        if np.isfinite(rounded).all() and (may_round or np.array_equal(rounded, weights)):
            return rounded, DType.FLOAT16
    bits = np.ascontiguousarray(weights).view(np.uint32)
    if may_round or (sample.view(np.uint32) & _LOWER_HALF).any() or (bits & _LOWER_HALF).any():
        return None
    return (bits >> _HALF_BITS).astype(np.uint16), DType.BFLOAT16


@np.errstate(over="ignore")
def _are_halves(sample: Array) -> bool:
    return np.array_equal(sample.astype(np.float16), sample)


def _looks_up_floats(program: Program, step: Step) -> bool:
    """Tell whether a step looks up rows of a constant, as floats of 32 bits."""
    if not isinstance(step.operator, Gather):
        return False
    table = program.constants.get(step.inputs[0])
    return (
        table is not None
        and program.tensors[step.inputs[0]].alias is None
        and table.dtype == np.float32
        and table.size >= _SAMPLE
        and program.tensors[step.outputs[0]].dtype is DType.FLOAT32
    )


def _may_have_short_filter(program: Program, step: Step) -> bool:
    operator = step.operator
    if not isinstance(operator, Conv2D | FullyConnected) or getattr(operator, "groups", 1) != 1:
        return False
    weights = program.constants.get(step.inputs[1])
    rank = 5 if isinstance(operator, Conv2D) else 3
    return (
        weights is not None
        and program.tensors[step.inputs[1]].alias is None
        and weights.dtype == np.float32
        and weights.ndim == rank
        and weights.size > 0
    )


def _has_rows(program: Program, step: Step, most: int | None) -> bool:
    """Tell whether a step is a product of so many rows at most."""
    if most is None:
        return True
    result = program.tensors[step.outputs[0]]
    return isinstance(step.operator, FullyConnected) and (
        int(result.num_elements) <= most * result.shape[-1]
    )


def _scratch(program: Program, step: Step) -> int:
    return step.operator.scratch(program.operands(step))
