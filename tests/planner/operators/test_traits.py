"""What operators promise, and that an unknown one promises nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.operators.operator import Operands, Operator, whole
from arenite.planner.operators.parts import Part
from arenite.planner.tensors import DType, Tensor
from support.tiny_graphs import operator


def tensor(*shape: int, name: str = "t", dtype: DType = DType.FLOAT32) -> Tensor:
    return Tensor(name, dtype, shape)


def operands(inputs, *outputs):
    return Operands(tuple(inputs), tuple(outputs))


UNKNOWN = [
    Operator(), operator("com.other.Relu"), operator("Einsum"), operator("Relu2"),
    operator("CUSTOM"),
]  # fmt: skip


@pytest.mark.parametrize("unknown", UNKNOWN, ids=lambda each: each.label)
def test_an_unknown_operator_promises_nothing(unknown):
    step = operands([tensor(1, 4, 4, 2), tensor(2)], tensor(1, 4, 4, 2))
    assert unknown.overwritable(step) == ()
    assert unknown.parts(step) == ()
    assert unknown.updates == ()
    assert unknown.sliding(step) is None
    assert unknown.scratch(step) == unknown.multiply_adds(step) == 0
    assert not unknown.makes_rows(step)
    assert unknown.accumulates_rows(step) == 0
    assert not any((unknown.is_view(step), unknown.changes_nothing(step)))
    assert not any((unknown.is_clamp, unknown.takes_clamp, unknown.reduces_groups))
    corner = ((0, 1),) * 4
    assert unknown.input_region(step, 0, corner) == whole(step.inputs[0])
    assert unknown.input_region(step, 1, corner) == ((0, 2),)


@st.composite
def broadcasts(draw):
    """The shapes of two operands, of their result, and a region of it."""
    result = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shapes = []
    for _ in range(2):
        kept = draw(st.integers(0, len(result)))
        shape = [n if draw(st.booleans()) else 1 for n in result]
        shapes.append(tuple(shape[len(result) - kept :]))
    made = np.broadcast_shapes(*shapes)
    region = tuple(
        (start, draw(st.integers(start + 1, n)))
        for n in made
        for start in [draw(st.integers(0, n - 1))]
    )
    return shapes, made, region


@given(broadcasts())
def test_what_is_computed_element_by_element_reads_what_is_broadcast_to_the_region(drawn):
    shapes, result, region = drawn
    step = operands([tensor(*shape) for shape in shapes], tensor(*result))
    for position, shape in enumerate(shapes):
        count = int(np.prod(shape, dtype=int))
        addresses = np.broadcast_to(np.arange(count).reshape(shape), result)
        read = set(addresses[tuple(slice(*each) for each in region)].ravel().tolist())
        found = operator("Add").input_region(step, position, region)
        within = np.arange(count).reshape(shape)[tuple(slice(*each) for each in found)]
        assert set(within.ravel().tolist()) == read


@pytest.mark.parametrize("op_type", ["Add", "ADD"])
def test_what_is_broadcast_or_of_another_width_is_not_overwritten(op_type):
    full, row = tensor(4, 3), tensor(3)
    narrow = tensor(4, 3, dtype=DType.INT8)
    add = operator(op_type)
    assert add.overwritable(operands([full, full], full)) == (0, 1)
    assert add.overwritable(operands([row, full], full)) == (1,)
    assert add.overwritable(operands([full, None], full)) == (0,)
    assert add.overwritable(operands([full, full], narrow)) == ()


@pytest.mark.parametrize("op_type", ["Softmax", "SOFTMAX"])
def test_a_normalisation_overwrites_what_it_normalises_alone(op_type):
    full = tensor(4, 3)
    softmax = operator(op_type)
    assert softmax.overwritable(operands([full, full], full)) == (0,)
    assert softmax.overwritable(operands([full], tensor(4, 3, dtype=DType.INT8))) == ()
    assert softmax.reduces_groups


def test_the_parts_of_a_join_lie_one_after_the_other():
    parts = [tensor(2, 3, name="a"), tensor(1, 3, name="b")]
    found = operator("Concat", {"axis": 0}).parts(operands(parts, tensor(3, 3, name="c")))
    assert found == (Part("a", "c", 0), Part("b", "c", 24))


def test_the_parts_of_a_split_lie_one_after_the_other():
    parts = [tensor(1, 3, name="a"), tensor(2, 3, name="b")]
    found = operator("Split", {"axis": 0}).parts(operands([tensor(3, 3, name="x")], *parts))
    assert found == (Part("a", "x", 0), Part("b", "x", 12))


@pytest.mark.parametrize(
    ("op_type", "may_repeat"),
    [
        ("Conv", True), ("Where", True), ("RandomNormalLike", False), ("Bernoulli", False),
        ("my.domain.Op", False), ("CONV_2D", True), ("CUSTOM", False), ("RANDOM_UNIFORM", False),
    ],
)  # fmt: skip
def test_what_draws_random_numbers_or_is_unknown_does_not_run_again(
    op_type: str, may_repeat: bool
) -> None:
    assert operator(op_type).repeatable is may_repeat


def test_a_view_touches_no_memory() -> None:
    x = Tensor("x", DType.FLOAT32, (4, 4))
    operands = Operands((x, None), (x,))
    assert operator("Reshape").bytes_touched(operands) == 0
    assert operator("Relu").bytes_touched(operands) == 128
    assert not Operator().repeatable


@pytest.mark.parametrize(
    ("op_type", "inputs", "result"),
    [
        ("Conv", [tensor(2, 4, 6, 6), tensor(8, 2, 3, 3)], tensor(2, 8, 4, 4)),
        ("ConvTranspose", [tensor(2, 8, 4, 4), tensor(8, 2, 3, 3)], tensor(2, 4, 6, 6)),
        ("CONV_2D", [tensor(2, 6, 6, 4), tensor(8, 3, 3, 2)], tensor(2, 4, 4, 8)),
        (
            "TRANSPOSE_CONV",
            [tensor(4), tensor(2, 3, 3, 8), tensor(2, 4, 4, 8)],
            tensor(2, 6, 6, 2),
        ),
    ],
)
def test_a_convolution_and_the_transposed_one_multiply_as_often(op_type, inputs, result):
    multiply_adds = operator(op_type).multiply_adds(operands(inputs, result))
    assert multiply_adds == 2 * 4 * 4 * 8 * 2 * 3 * 3


@pytest.mark.parametrize("op_type", ["ConvTranspose", "TRANSPOSE_CONV"])
def test_a_transposed_convolution_without_filters_multiplies_nothing(op_type):
    assert operator(op_type).multiply_adds(operands([tensor(4)], tensor(2, 6, 6, 2))) == 0
    empty = [tensor(4), tensor(0, 3, 3, 0), tensor(2, 4, 4, 8)]
    assert operator(op_type).multiply_adds(operands(empty, tensor(2, 6, 6, 0))) == 0
