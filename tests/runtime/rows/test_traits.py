"""What operators say of rows, against what changes where an element of an input is disturbed."""

from dataclasses import fields

import numpy as np
import pytest

from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.tensors import DType, Tensor
from arenite.runtime import Session
from arenite.runtime.operators import (
    UNSTORED,
    ArgReduce,
    Attention,
    Binary,
    BinaryFunction,
    Conv2D,
    Convert,
    Copy,
    DepthwiseConv2D,
    FullyConnected,
    Gather,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    MatMul,
    Move,
    MultiplyAdd,
    Pool2D,
    PoolKind,
    Reduce,
    ReduceFunction,
    Resize2D,
    Select,
    Softmax,
    TransposedConv2D,
    Unary,
    UnaryFunction,
)
from arenite.runtime.rewrites import packed_filter
from support.one_step import Given, constant, one_step

DRAW = np.random.default_rng(5)
LABELS = {each.label: each for each in DType}


def floats(*shape):
    return constant(DRAW.uniform(0.5, 1.5, shape).astype(np.float32))


def add(**more):
    return Binary(function=BinaryFunction.ADD, **more)


IMAGE = Given((1, 7, 5, 3))
COLUMNS = {"column_low": (0, 2, 4)}
ROWS = (4, 0, 0, 2, 6)

# The operator, its inputs, its output, and whether the rows that it names are all that it reads.
CASES = {
    "conv": (Conv2D(strides=(2, 1), dilations=(2, 1), padding=(3, 0, 1, 0)),
             [IMAGE, constant(packed_filter(DRAW.uniform(0.5, 1, (4, 3, 2, 3)).astype("float32"))),
              None, Given((1, 4, 4, 4))], Given((1, 4, 4, 4)), False),
    "depthwise": (DepthwiseConv2D(strides=(2, 2), padding=(0, 1, 1, 0)),
                  [IMAGE, floats(1, 3, 3, 3)], Given((1, 3, 2, 3)), True),
    "product": (FullyConnected(), [IMAGE, floats(1, 3, 16)], Given((1, 7, 5, 4)), True),
    "transposed": (TransposedConv2D(strides=(2, 3), padding=(1, 0, 0, 1)),
                   [IMAGE, floats(2, 3, 2, 3)], Given((1, 14, 13, 2)), True),
    "maximum": (Pool2D(kind=PoolKind.MAXIMUM, window=(3, 2), strides=(2, 1), padding=(1, 0, 1, 0)),
                [IMAGE], Given((1, 4, 4, 3)), True),
    "average": (Pool2D(kind=PoolKind.AVERAGE, window=(3, 2), padding=(2, 0, 0, 0)),
                [IMAGE], Given((1, 7, 4, 3)), True),
    "sigmoid": (Unary(function=UnaryFunction.SIGMOID), [IMAGE], IMAGE, True),
    "sum": (add(), [IMAGE, Given((1, 7, 1, 3))], IMAGE, True),
    "sum with channels": (add(), [IMAGE, Given((1, 1, 1, 3))], IMAGE, True),
    "sum with a row": (add(), [Given((5, 3)), IMAGE], IMAGE, True),
    "factors": (MultiplyAdd(), [IMAGE, floats(3), floats(3)], IMAGE, True),
    "choice": (Select(), [Given((1, 7, 5, 1), "bool"), IMAGE, Given((3,))], IMAGE, False),
    "convert": (Convert(), [IMAGE], Given((1, 7, 5, 3), "int8", scales=(0.01,)), True),
    "softmax": (Softmax(), [IMAGE], IMAGE, True),
    "length": (L2Norm(epsilon=1e-6), [IMAGE], IMAGE, True),
    "layer norm": (LayerNorm(epsilon=1e-6), [IMAGE, floats(3)], IMAGE, True),
    "layer norm of rows": (LayerNorm(epsilon=1e-6, num_axes=2), [IMAGE, floats(5, 3)], IMAGE,
                           True),
    "attention": (Attention(heads=4, key_heads=2, scale=1.0),
                  [Given((1, 7, 8)), Given((1, 2, 5, 2)), Given((1, 2, 5, 3))], Given((1, 7, 12)),
                  True),
    "neighbours": (LocalResponseNorm(size=3, alpha=0.1, beta=0.75, bias=1.0), [IMAGE], IMAGE,
                   True),
    "largest": (ArgReduce(axis=3), [IMAGE], Given((1, 7, 5), "int64"), False),
    "slices of a table": (Gather(axis=0), [floats(9, 3), Given((1, 7, 5), "int32")], IMAGE, True),
    "nearest": (Resize2D(row_low=ROWS, **COLUMNS), [IMAGE], Given((1, 5, 3, 3)), True),
    "blended": (Resize2D(row_low=(0, 1, 5), row_high=(1, 2, 6), row_weight=(0.5, 0.25, 0.75),
                         column_low=(0, 1), column_high=(1, 2), column_weight=(0.5, 0.5)),
                [IMAGE], Given((1, 3, 2, 3)), True),
    "joined": (Copy(moves=(
        Move(shape=(35, 3), input_strides=(3, 1), output_strides=(5, 1)),
        Move(input=1, shape=(35, 2), input_strides=(2, 1), output_start=3, output_strides=(5, 1)),
    )), [IMAGE, Given((1, 7, 5, 2))], Given((1, 7, 5, 5)), True),
    "cut and filled": (Copy(moves=(
        Move(shape=(3, 6), input_start=30, input_strides=(15, 1), output_start=15,
             output_strides=(15, 1)),
    ), fill=bytes(4)), [IMAGE], Given((1, 6, 5, 3)), True),
    "every other row": (Copy(moves=(
        Move(shape=(4, 15), input_strides=(30, 1), output_strides=(15, 1)),
    )), [IMAGE], Given((1, 4, 5, 3)), True),
}  # fmt: skip


OTHER_RANKS = ("largest", "slices of a table")
"""Cases whose rows are those of an input that has fewer axes, or more."""


def kernel_of(operator):
    """Return the fields of an operator as the schema's JSON has them."""

    def plain(value):
        if isinstance(value, Move):
            return kernel_of(value)
        return [plain(each) for each in value] if isinstance(value, tuple | bytes) else value

    stored = (each for each in fields(operator) if not each.metadata.get(UNSTORED))
    names = [each.name for each in stored if each.name not in ("min", "max")]
    return {name: plain(getattr(operator, name)) for name in names}


def operands_of(inputs, output):
    return Operands(
        tuple(
            None if each is None else Tensor(f"i{i}", LABELS[each.type], tuple(each.shape))
            for i, each in enumerate(inputs)
        ),
        (Tensor("o", LABELS[output.type], tuple(output.shape)),),
    )


def disturbed(array):
    """Yield copies of an array with one element changed each, and where."""
    for index in np.ndindex(*array.shape):
        for value in (True, False) if array.dtype == bool else (9.0, -9.0):
            other = array.copy()
            other[index] = value
            yield index, other


@pytest.mark.parametrize("name", CASES)
def test_a_row_depends_on_the_rows_that_it_is_said_to(name):
    operator, inputs, output, is_exact = CASES[name]
    operands = operands_of(inputs, output)
    assert operator.makes_rows(operands)
    rows = output.shape[1]
    feeds = {
        f"i{i}": DRAW.uniform(0, 1, each.shape) > 0.5
        if each.type == "bool"
        else DRAW.uniform(0.1, 1, each.shape).astype(np.float32)
        if each.type == "float32"
        else DRAW.integers(1, 8, each.shape).astype(each.type)
        for i, each in enumerate(inputs)
        if each is not None and each.array is None
    }
    pieces = one_step(type(operator).__name__, kernel_of(operator), inputs, [output])
    with Session.of_pieces(pieces, name) as session:
        before = session.run(feeds)["o0"]
        for position, given in enumerate(inputs):
            if given is None or given.array is not None:
                continue
            reached = [set() for _ in range(rows)]
            is_whole = len(given.shape) != len(output.shape) and name not in OTHER_RANKS
            is_whole = is_whole or given.shape[1] == 1
            for index, other in disturbed(feeds[f"i{position}"]):
                made = session.run(feeds | {f"i{position}": other})["o0"]
                for row in range(rows):
                    if made[:, row].tobytes() != before[:, row].tobytes():
                        reached[row].add(0 if is_whole else index[1])
            for first in range(rows):
                for stop in range(first + 1, rows + 1):
                    region = tuple((0, n) for n in output.shape)
                    region = (region[0], (first, stop), *region[2:])
                    found = operator.input_region(operands, position, region)
                    if is_whole:
                        assert found == tuple((0, n) for n in given.shape)
                        continue
                    low, high = found[1]
                    needed = set().union(*reached[first:stop])
                    assert 0 <= low <= high <= given.shape[1]
                    assert not needed or (low <= min(needed) and max(needed) < high)
                    if is_exact:
                        assert (low, high) == (min(needed), max(needed) + 1) if needed else True


@pytest.mark.parametrize("name", ["joined", "cut and filled", "every other row"])
def test_the_rows_of_a_copy_are_those_of_its_regions(name):
    operator, inputs, output, _ = CASES[name]
    operands = operands_of(inputs, output)
    for position in range(len(inputs)):
        expected = list(Operator.rows_read(operator, operands, position))
        assert list(operator.rows_read(operands, position)) == expected


def tensor(*shape, dtype=DType.FLOAT32):
    return Tensor("t", dtype, shape)


WHOLE = {
    "an unknown operator": (Operator(), [tensor(1, 4, 4, 2)], tensor(1, 4, 4, 2)),
    "two images": (Softmax(), [tensor(2, 4, 4, 2)], tensor(2, 4, 4, 2)),
    "a matrix": (Softmax(), [tensor(1, 4)], tensor(1, 4)),
    "a product of matrices": (MatMul(), [tensor(1, 4, 2), tensor(1, 2, 3)], tensor(1, 4, 3)),
    "weights as they are": (Conv2D(), [tensor(1, 4, 4, 2), tensor(3, 1, 1, 2)],
                            tensor(1, 4, 4, 3)),
    "bytes without scales": (DepthwiseConv2D(), [tensor(1, 4, 4, 2, dtype=DType.INT8),
                                                 tensor(1, 1, 1, 2, dtype=DType.INT8)],
                             tensor(1, 4, 4, 2, dtype=DType.INT8)),
    "rows of another axis": (add(), [tensor(1, 4, 4, 2), tensor(4, 4, 2)], tensor(1, 4, 4, 2)),
    "a norm of the image": (
        InstanceNorm(epsilon=1e-5), [tensor(1, 4, 4, 2), tensor(2), tensor(2)],
        tensor(1, 4, 4, 2)),
    "a norm of all rows": (LayerNorm(epsilon=1e-5, num_axes=3), [tensor(1, 4, 4, 2)],
                           tensor(1, 4, 4, 2)),
    "the largest row": (ArgReduce(axis=1), [tensor(1, 4, 4, 2)],
                        tensor(1, 1, 4, 2, dtype=DType.INT64)),
    "slices by several indices": (
        Gather(axis=0, num_axes=2), [tensor(3, 4, 2), tensor(1, 4, 2, dtype=DType.INT64)],
        tensor(1, 4, 2)),
    "slices": (Gather(axis=1), [tensor(1, 4, 4, 2), tensor(1, 3, dtype=DType.INT64)],
               tensor(1, 3, 4, 2)),
    "rows turned into columns": (
        Copy(moves=(Move(shape=(4, 4, 2), input_strides=(8, 2, 1), output_strides=(2, 8, 1)),)),
        [tensor(1, 4, 4, 2)], tensor(1, 4, 4, 2)),
    "rows of another length": (
        Copy(moves=(Move(shape=(32,), input_strides=(1,), output_strides=(1,)),)),
        [tensor(1, 4, 4, 2)], tensor(1, 3, 11, 1)),
    "places": (Pool2D(kind=PoolKind.MAXIMUM, window=(1, 1)), [tensor(1, 4, 4, 2)],
               tensor(1, 4, 4, 2), tensor(1, 4, 4, 2, dtype=DType.INT64)),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_what_the_core_makes_at_once_makes_no_rows(name):
    operator, inputs, *outputs = WHOLE[name]
    operands = Operands(tuple(inputs), tuple(outputs))
    if name == "rows turned into columns":
        # Each row of the result takes a column of each row: one by one, but from all of them.
        assert operator.input_region(operands, 0, ((0, 1), (2, 3), (0, 4), (0, 2)))[1] == (0, 4)
        return
    if name in ("weights as they are", "bytes without scales"):
        assert not operator.has_kernel_by_rows(operands)  # other kernels may
        return
    assert not operator.makes_rows(operands)
    assert operator.accumulates_rows(operands) == 0


@pytest.mark.parametrize(
    ("function", "axes", "shape", "dtype", "size"),
    [
        ("mean", (1, 2), (1, 7, 5, 3), DType.FLOAT32, 12),
        ("sum", (1, 2), (1, 7, 5, 3), DType.INT8, 12),
        ("mean", (0, 1, 2), (1, 7, 5, 3), DType.UINT8, 12),
        ("mean", (1,), (1, 7, 3), DType.FLOAT32, 12),
        ("mean", (1, 2), (2, 7, 5, 3), DType.FLOAT32, 0),
        ("mean", (1,), (1, 7, 5, 3), DType.FLOAT32, 0),
        ("mean", (1, 2, 3), (1, 7, 5, 3), DType.FLOAT32, 0),
        ("maximum", (1, 2), (1, 7, 5, 3), DType.FLOAT32, 0),
        ("mean", (1, 2), (1, 7, 5, 3), DType.INT32, 0),
        ("mean", (1, 2), (1, 4096, 4096, 3), DType.INT8, 0),
    ],
)
def test_sums_of_images_take_rows_as_they_come(function, axes, shape, dtype, size):
    operator = Reduce(function=ReduceFunction(function), axes=axes)
    step = Operands((Tensor("x", dtype, shape),), (Tensor("y", dtype, (1, shape[-1])),))
    assert operator.accumulates_rows(step) == size


def test_an_average_with_one_row_takes_rows_and_one_with_two_makes_them():
    step = Operands((tensor(1, 7, 6, 3),), (tensor(1, 1, 2, 3),))
    average = Pool2D(kind=PoolKind.AVERAGE, window=(7, 3), strides=(1, 3))
    assert (average.accumulates_rows(step), average.makes_rows(step)) == (24, False)
    step = Operands((tensor(1, 7, 6, 3),), (tensor(1, 2, 2, 3),))
    average = Pool2D(kind=PoolKind.AVERAGE, window=(6, 3), strides=(1, 3))
    assert (average.accumulates_rows(step), average.makes_rows(step)) == (0, True)
