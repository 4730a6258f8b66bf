"""What the operators of our runtime promise: counted by hand, or against naive kernels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.operators.operator import Operands
from arenite.planner.operators.parts import Part
from arenite.planner.tensors import DType, Tensor
from arenite.runtime.operators import (
    PANEL,
    Conv2D,
    Copy,
    DepthwiseConv2D,
    External,
    FullyConnected,
    Lstm,
    MatMul,
    Move,
    Pool2D,
    PoolKind,
    Reduce,
    ReduceFunction,
    Select,
    Softmax,
    Svdf,
    TransposedConv2D,
    Unary,
    UnaryFunction,
    operators,
)
from support.sliding_kernels import CHANNELS_FIRST, Image, images, kernels


def tensor(*shape, name="t", dtype=DType.FLOAT32):
    return Tensor(name, dtype, shape)


def operands(inputs, *outputs):
    return Operands(tuple(inputs), tuple(outputs))


def runtime_operator(kernel):
    """Return the operator that runs a kernel of ONNX, and its weights as we store them."""
    top, left, bottom, right = kernel.attributes["pads"]
    window = {
        "padding": (top, right, bottom, left),
        "strides": kernel.attributes["strides"],
        "dilations": kernel.attributes["dilations"],
    }
    if kernel.weights is None:
        size = kernel.attributes["kernel_shape"]
        return Pool2D(kind=PoolKind.AVERAGE, window=size, **window), []
    outputs, inputs, rows, columns = kernel.weights
    groups = kernel.attributes["group"]
    if groups > 1:
        return DepthwiseConv2D(**window), [tensor(1, rows, columns, outputs)]
    return Conv2D(**window), [tensor(-(-outputs // PANEL), rows, columns, inputs, PANEL)]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_region_of_an_image_holds_every_element_that_a_window_reads(data):
    kernel = data.draw(kernels(data.draw(images()), CHANNELS_FIRST))
    operator, weights = runtime_operator(kernel)
    step = operands([tensor(*kernel.source), *weights], tensor(*kernel.result))
    region = []
    for length in kernel.result:
        start = data.draw(st.integers(0, length - 1))
        region.append((start, data.draw(st.integers(start + 1, length))))
    found = operator.input_region(step, 0, tuple(region))
    channels_first = kernel.source.shape(channels_last=False)
    for position, read in enumerate(kernel.reads):
        n, c, y, x = np.unravel_index(position, kernel.result.shape(channels_last=False))
        index = Image(n, y, x, c)
        if not all(start <= i < stop for i, (start, stop) in zip(index, region, strict=True)):
            continue
        for address in read:
            n, c, y, x = np.unravel_index(address, channels_first)
            where = zip((n, y, x, c), found, strict=True)
            assert all(start <= i < stop for i, (start, stop) in where)
    for position in range(1, len(step.inputs)):
        everything = tuple((0, length) for length in step.inputs[position].shape)
        assert operator.input_region(step, position, tuple(region)) == everything


def test_a_pool_of_no_image_reads_everything():
    pool = Pool2D(kind=PoolKind.MAXIMUM, window=(1, 1))
    assert pool.input_region(operands([tensor(4, 2)], tensor(4, 2)), 0, ((0, 1), (0, 1))) == (
        (0, 4), (0, 2),
    )  # fmt: skip


def test_a_product_with_weights_reads_the_rows_that_it_makes():
    step = operands([tensor(2, 5, 3), tensor(4, 3), tensor(4)], tensor(2, 5, 4))
    region = ((1, 2), (2, 4), (0, 1))
    found = [FullyConnected().input_region(step, position, region) for position in range(3)]
    assert found == [((1, 2), (2, 4), (0, 3)), ((0, 4), (0, 3)), ((0, 4),)]


@pytest.mark.parametrize(
    ("operator", "step", "count"),
    [
        (Conv2D(), operands([tensor(1, 8, 8, 3), tensor(16, 3, 3, 3)], tensor(1, 6, 6, 16)),
         6 * 6 * 16 * 3 * 3 * 3),
        (Conv2D(groups=2), operands([tensor(1, 4, 4, 4), tensor(6, 1, 1, 2)], tensor(1, 4, 4, 6)),
         4 * 4 * 6 * 2),
        (Conv2D(), operands([tensor(1, 8, 8, 3), tensor(2, 3, 3, 3, PANEL)], tensor(1, 6, 6, 20)),
         6 * 6 * 20 * 3 * 3 * 3),
        (DepthwiseConv2D(), operands([tensor(1, 5, 5, 4), tensor(1, 3, 3, 8)], tensor(1, 3, 3, 8)),
         3 * 3 * 8 * 3 * 3),
        (TransposedConv2D(strides=(2, 2)),
         operands([tensor(1, 3, 3, 4), tensor(5, 2, 2, 4)], tensor(1, 6, 6, 5)),
         3 * 3 * 4 * 5 * 2 * 2),
        (TransposedConv2D(strides=(2, 2), groups=2),
         operands([tensor(1, 3, 3, 4), tensor(6, 2, 2, 2)], tensor(1, 6, 6, 6)),
         3 * 3 * 4 * 3 * 2 * 2),
        (FullyConnected(), operands([tensor(7, 3), tensor(4, 3)], tensor(7, 4)), 7 * 4 * 3),
        (FullyConnected(), operands([tensor(7, 3), tensor(1, 3, PANEL)], tensor(7, 4)), 7 * 4 * 3),
        (MatMul(), operands([tensor(2, 5, 3), tensor(2, 3, 4)], tensor(2, 5, 4)), 2 * 5 * 3 * 4),
        (MatMul(transpose_a=True), operands([tensor(3, 5), tensor(3, 4)], tensor(5, 4)),
         5 * 3 * 4),
        (Unary(function=UnaryFunction.SIGMOID), operands([tensor(4)], tensor(4)), 0),
    ],
)  # fmt: skip
def test_products_are_counted_as_by_hand(operator, step, count):
    assert operator.multiply_adds(step) == count


@pytest.mark.parametrize(
    ("operator", "inputs", "overwritten"),
    [
        (Unary(function=UnaryFunction.SIGMOID), [tensor(4, 3)], (0,)),
        (Softmax(), [tensor(4, 3)], (0,)),
        (Select(), [tensor(4, 3, dtype=DType.BOOL), tensor(4, 3), tensor(3)], (1,)),
        (FullyConnected(), [tensor(4, 3), tensor(3, 3)], ()),
        (MatMul(), [tensor(4, 3), tensor(3, 3)], ()),
        (External(runtime="onnxruntime", model=b"", input_names=(), output_names=()),
         [tensor(4, 3)], ()),
    ],
)  # fmt: skip
def test_only_what_is_read_before_its_place_is_written_is_overwritten(
    operator, inputs, overwritten
):
    assert operator.overwritable(operands(inputs, tensor(4, 3))) == overwritten


def test_a_reduction_overwrites_what_it_reduces_to_itself():
    function = ReduceFunction.MEAN
    alone, several = tensor(4, 1, 3), tensor(4, 2, 3)
    reduce = Reduce(function=function, axes=(1,))
    assert reduce.overwritable(operands([alone], tensor(4, 3))) == (0,)
    assert reduce.overwritable(operands([several], tensor(4, 3))) == ()
    assert reduce.overwritable(operands([alone], tensor(4, 3, dtype=DType.INT8))) == ()


def move(shape, **more):
    strides = (shape[1], 1)
    return Move(shape=shape, **{"input_strides": strides, "output_strides": strides, **more})


def test_a_copy_of_runs_has_parts_and_one_with_a_fill_has_none():
    a, b, c = tensor(2, 3, name="a"), tensor(1, 3, name="b"), tensor(3, 3, name="c")
    joined = (move((2, 3)), move((1, 3), input=1, output_start=6))
    step = operands([a, b], c)
    assert Copy(moves=joined).parts(step) == (Part("a", "c", 0), Part("b", "c", 24))
    assert Copy(moves=joined, fill=bytes(4)).parts(step) == ()


def test_of_a_copy_of_rows_any_input_may_lie_where_the_output_begins():
    a, b, c = tensor(2, 3, name="a"), tensor(2, 5, name="b"), tensor(2, 8, name="c")
    rows = Move(shape=(2, 3), input_strides=(3, 1), output_strides=(8, 1))
    more = Move(input=1, shape=(2, 5), input_strides=(5, 1), output_start=3, output_strides=(8, 1))
    parts = Copy(moves=(rows, more)).parts(operands([a, b], c))
    assert parts == (Part("b", "c", 0, moves=True), Part("a", "c", 0, moves=True))


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"output_start": 2}, "rows would overlap"),
        ({"input": 0}, "the same input twice"),
        ({"output_strides": (9, 1)}, "rows of another length"),
        ({"input_strides": (5, 2)}, "elements that are not next to each other"),
        ({"shape": (2, 4)}, "a part of the input"),
    ],
)
def test_a_copy_of_anything_but_whole_rows_is_made_beside_its_inputs(edit, why):
    a, b, c = tensor(2, 3, name="a"), tensor(2, 5, name="b"), tensor(2, 8, name="c")
    rows = Move(shape=(2, 3), input_strides=(3, 1), output_strides=(8, 1))
    more = Move(input=1, shape=(2, 5), input_strides=(5, 1), output_start=3, output_strides=(8, 1))
    parts = Copy(moves=(rows, replace(more, **edit))).parts(operands([a, b], c))
    assert not any(part.moves for part in parts), why


def test_what_is_cut_out_is_a_part_where_its_bytes_are_one_run():
    source, row, column = tensor(3, 3, name="x"), tensor(1, 3, name="r"), tensor(3, 1, name="c")
    (found,) = Copy(moves=(move((1, 3), input_start=3),)).parts(operands([source], row))
    assert found == Part("r", "x", 12)
    (refused,) = Copy(
        moves=(move((3, 1), input_start=1, input_strides=(3, 1), output_strides=(1, 1)),)
    ).parts(operands([source], column))
    assert refused.offset is None


def test_the_states_that_a_layer_keeps_are_what_it_writes():
    assert Svdf().updates == (4,)
    assert Lstm(keeps_state=True).updates == (4, 5)
    assert Lstm().updates == ()


def test_every_operator_has_a_number_of_its_own():
    numbers = [operator.number for operator in operators()]
    assert len(set(numbers)) == len(numbers)
    assert len({operator.__name__ for operator in operators()}) == len(numbers)
