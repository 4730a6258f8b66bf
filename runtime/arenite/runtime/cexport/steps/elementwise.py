"""Functions of each element."""

from dataclasses import replace

import numpy as np

from arenite.planner.tensors import Tensor
from arenite.runtime.cexport import tables
from arenite.runtime.cexport.arithmetic import (
    clamp_of,
    quantised_multiplier,
    scale_of,
    zero_of,
)
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.steps.broadcasting import Meeting, meet
from arenite.runtime.cexport.steps.registry import writes
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Convert, Unary

B = BinaryFunction


@writes(Unary)
def unary(t: StepWriter) -> None:
    """Write a function of one number: of bytes a table."""
    operator = t.operator
    assert isinstance(operator, Unary)
    t.types("int8")
    table = tables.unary(operator, t.input(), t.output(), single_rounding=t.file.single_rounding)
    look_up(t, table)


@writes(Convert)
def convert(t: StepWriter) -> None:
    """Write a change of type or of quantisation."""
    source, result = t.input(), t.output()
    kinds = source.dtype.label, result.dtype.label
    if kinds == ("int8", "int8"):
        look_up(t, tables.rescaled(source, result, single_rounding=t.file.single_rounding))
        return
    if set(kinds) == {"int8", "uint8"}:
        _check_shift(source, result)
        look_up(t, np.arange(256, dtype=np.uint8) ^ np.uint8(0x80))
        return
    raise NotWrittenError(f"it converts {kinds[0]} to {kinds[1]}")


def _check_shift(source: Tensor, result: Tensor) -> None:
    sign = 128 if result.dtype.label == "uint8" else -128
    zero = zero_of(source) + sign
    if source.quantisation is None or replace(source.quantisation, zero_point=zero) != (
        result.quantisation
    ):
        raise NotWrittenError("it converts bytes with a sign to bytes without, of another scale")


def look_up(t: StepWriter, table: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    """Write a function of bytes by its table."""
    rows, width = t.rows(t.output())
    name = t.constant(table, "table")
    t.call(
        "lookup_8", name, width, t.rows_of(t.input(), width), t.rows_to(t.output(), width), 0,
        rows,
    )  # fmt: skip


@writes(Binary)
def binary(t: StepWriter) -> None:
    """Write a function of two numbers."""
    operator = t.operator
    assert isinstance(operator, Binary)
    one, other, result = t.input(0), t.input(1), t.output()
    if {one.dtype.label, other.dtype.label, result.dtype.label} != {"int8"}:
        raise NotWrittenError(f"it computes in {one.dtype.label}")
    found = meet((one, other), result, t.rows(result))
    if operator.function in (B.ADD, B.SUBTRACT):
        layer = _sum(t, operator, found)
        _call(t, "add_s8", layer, found, 1)
    elif operator.function is B.MULTIPLY:
        layer = _product(t, operator, found)
        _call(t, "multiply_s8", layer, found, 1)
    else:
        raise NotWrittenError(f"there is no {operator.function.value} of bytes")


def _call(t: StepWriter, kernel: str, layer: str, found: Meeting, size: int) -> None:
    t.call(
        kernel,
        layer,
        t.rows_of(t.input(0), found.pitches[0] * size),
        t.rows_of(t.input(1), found.pitches[1] * size),
        t.rows_to(t.output(), found.width * size),
        0,
        found.rows,
    )


def _sum(t: StepWriter, operator: Binary, found: Meeting) -> str:
    one, other, result = t.input(0), t.input(1), t.output()
    most = 2.0 * max(scale_of(one), scale_of(other))
    factor_a, shift_a = quantised_multiplier(scale_of(one) / most)
    factor_b, shift_b = quantised_multiplier(scale_of(other) / most)
    factor, shift = quantised_multiplier(most / (2.0**20 * scale_of(result)))
    low, high = clamp_of(operator.min, operator.max, result)
    sign = -1 if operator.function is B.SUBTRACT else 1
    return t.layer(
        "add_layer",
        width=found.width,
        step_a=found.steps[0],
        step_b=found.steps[1],
        offset_a=-zero_of(one),
        offset_b=-zero_of(other),
        factor_a=factor_a,
        shift_a=shift_a,
        factor_b=factor_b,
        shift_b=shift_b,
        sign=sign,
        factor=factor,
        shift=shift,
        out_zero=zero_of(result),
        low=low,
        high=high,
    )


def _product(t: StepWriter, operator: Binary, found: Meeting) -> str:
    one, other, result = t.input(0), t.input(1), t.output()
    factor, shift = quantised_multiplier(scale_of(one) * scale_of(other) / scale_of(result))
    low, high = clamp_of(operator.min, operator.max, result)
    return t.layer(
        "multiply_layer",
        width=found.width,
        step_a=found.steps[0],
        step_b=found.steps[1],
        offset_a=-zero_of(one),
        offset_b=-zero_of(other),
        factor=factor,
        shift=shift,
        out_zero=zero_of(result),
        low=low,
        high=high,
    )
