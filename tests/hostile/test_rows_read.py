"""Which rows of its operands a step may read while it makes some: no other needs to be live."""

import math
import re

import numpy as np
import pytest

from arenite.runtime import ProgramError
from support.edited_programs import load
from support.one_step import Given, constant, one_step


def image(rows, columns=4, channels=3):
    return Given((1, rows, columns, channels))


def concatenated():
    """Join two images of six rows by their channels, rows and columns being one axis."""

    def move(number):
        return {
            "input": number, "output": 0, "shape": [24, 3], "input_start": 0,
            "input_strides": [3, 1], "output_start": 3 * number, "output_strides": [6, 1],
        }  # fmt: skip

    return {"moves": [move(0), move(1)]}


def padded():
    """Put six rows under two others."""
    move = {
        "input": 0, "output": 0, "shape": [6, 4, 3], "input_start": 0,
        "input_strides": [12, 3, 1], "output_start": 24, "output_strides": [12, 3, 1],
    }  # fmt: skip
    return {"moves": [move], "fill": [0, 0, 0, 0]}


def mirrored():
    """Put the first five rows, from the last to the first, above the six."""

    def move(rows, start, stride, to):
        return {
            "input": 0, "output": 0, "shape": [rows, 4, 3], "input_start": start,
            "input_strides": [stride, 3, 1], "output_start": to, "output_strides": [12, 3, 1],
        }  # fmt: skip

    return {"moves": [move(5, 48, -12, 0), move(6, 0, 12, 60)]}


def turned():
    """Turn the columns of six rows round."""
    move = {
        "input": 0, "output": 0, "shape": [6, 4, 3], "input_start": 9,
        "input_strides": [12, -3, 1], "output_start": 0, "output_strides": [12, 3, 1],
    }  # fmt: skip
    return {"moves": [move]}


def filter_(*shape):
    return constant(np.zeros(shape, np.float32))


WINDOW = {"strides": [2, 1], "dilations": [2, 1], "padding": [1, 0, 2, 0]}
RESIZED = {"row_low": [0, 0, 1, 1, 4, 5], "column_low": [0, 1, 2, 3]}
BLENDED = RESIZED | {
    "row_high": [0, 1, 2, 2, 5, 5], "row_weight": [0.5] * 6, "column_high": [0, 1, 2, 3],
    "column_weight": [0.5] * 4,
}  # fmt: skip
SIX, NINE = image(6), image(9)

# Operator, attributes, inputs, output, a range of output rows, and the rows of each input that
# these need.
CASES = {
    "convolution": (
        "Conv2D", WINDOW, [NINE, filter_(1, 3, 1, 3, 16)], image(4), (1, 2), {0: range(1, 8)}),
    "its addend": (
        "Conv2D", {}, [SIX, filter_(1, 1, 1, 3, 16), None, SIX], SIX, (1, 2),
        {0: range(1, 3), 3: range(1, 3)}),
    "depthwise convolution": (
        "DepthwiseConv2D", WINDOW, [NINE, filter_(1, 3, 1, 3)], image(4), (0, 1), {0: range(4)}),
    "product": (
        "FullyConnected", {}, [SIX, filter_(1, 3, 16)], SIX, (3, 2), {0: range(3, 5)}),
    "transposed convolution": (
        "TransposedConv2D", {"strides": [2, 1], "padding": [1, 0, 0, 0]},
        [SIX, filter_(3, 3, 1, 3)], image(12), (4, 2), {0: range(2, 4)}),
    "pool": (
        "Pool2D", {"window": [3, 1], "strides": [1, 1], "padding": [1, 0, 1, 0]}, [SIX], SIX,
        (2, 1), {0: range(1, 4)}),
    "function": ("Unary", {"function": "negate"}, [SIX], SIX, (2, 3), {0: range(2, 5)}),
    "function of two": (
        "Binary", {"function": "add"}, [SIX, SIX], SIX, (2, 3), {0: range(2, 5), 1: range(2, 5)}),
    "function of a row": (
        "Binary", {"function": "add"}, [SIX, image(1)], SIX, (2, 3),
        {0: range(2, 5), 1: range(1)}),
    "softmax": ("Softmax", {}, [SIX], SIX, (5, 1), {0: range(5, 6)}),
    "sum of columns": (
        "Reduce", {"function": "sum", "axes": [2]}, [SIX], image(6, 1), (1, 1), {0: range(6)}),
    "resize": ("Resize2D", RESIZED, [SIX], SIX, (2, 2), {0: range(1, 2)}),
    "resize between rows": ("Resize2D", BLENDED, [SIX], SIX, (2, 3), {0: range(1, 6)}),
    "concatenation": (
        "Copy", concatenated(), [SIX, SIX], image(6, 4, 6), (2, 2),
        {0: range(2, 4), 1: range(2, 4)}),
    "padding": ("Copy", padded(), [SIX], image(8), (1, 3), {0: range(2)}),
    "padding alone": ("Copy", padded(), [SIX], image(8), (0, 2), {0: range(0)}),
    "mirrored rows": ("Copy", mirrored(), [SIX], image(11), (1, 2), {0: range(2, 4)}),
    "rows and their mirrored ones": ("Copy", mirrored(), [SIX], image(11), (3, 3), {0: range(2)}),
    "mirrored columns": ("Copy", turned(), [SIX], SIX, (2, 2), {0: range(2, 4)}),
    "attention": (
        "Attention", {"heads": 2, "key_heads": 1, "scale": 1.0},
        [Given((1, 6, 8)), Given((1, 6, 4)), Given((1, 6, 4)), Given((1, 6, 2, 6))],
        Given((1, 6, 8)), (2, 2), {0: range(2, 4), 1: range(6), 2: range(6), 3: range(2, 4)}),
    "cumulative sum": ("CumulativeSum", {"axis": 1}, [SIX], SIX, (0, 1), {0: range(6)}),
}  # fmt: skip


def refusal(case, operand, dead):
    """Return why a program is refused in which a row of an operand is dead at the turn."""
    kind, kernel, inputs, result, (first, count), _ = CASES[case]

    def edit(root):
        record = next(each for each in root["records"] if each["name"] == f"i{operand}")
        _, rows, *row = inputs[operand].shape
        size = 4 * math.prod(row)
        root["records"].remove(record)
        root["records"] += [
            {"name": "row", "offset": record["offset"] + row * size, "size": size,
             "start": 0, "end": 1 if row == dead else 2}
            for row in range(rows)
        ]  # fmt: skip

    # Once whole, so that every row is made.
    turns = [(0, 0, 0), (0, first, count)]
    data = b"".join(one_step(kind, kernel, inputs, [result], turns=turns, edit=edit))
    try:
        load(data)
    except ProgramError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES)
def test_the_rows_that_a_turn_reads_must_be_live_and_no_other(case):
    for operand, needed in CASES[case][5].items():
        rows = CASES[case][2][operand].shape[1]
        found = [
            row for row in range(rows)
            if re.search("in no record that is live at turn 1", refusal(case, operand, row))
        ]  # fmt: skip
        assert found == list(needed)
