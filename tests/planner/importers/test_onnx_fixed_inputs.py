"""Inputs that are fixed at a value are constants; dimensions without a name are their own."""

from pathlib import Path

import numpy as np
import pytest

from arenite.planner.errors import BindingError, UnboundDimensionError, UnsupportedModelError
from arenite.planner.importers import load, open_names
from support.tiny_onnx import parse, save

BRANCHES = """
    (float[8] x, int64 sr) => (y) <int64 fast = {16000}> {
        is_fast = Equal(sr, fast)
        y = If (is_fast) <
            then_branch = a () => (float[4] t) <int64[2] two = {4, 4}> { t, u = Split(x, two) },
            else_branch = b () => (float[8] e) { e = Neg(x) }
        >
    }
"""


def test_an_if_that_hangs_on_an_input_is_the_branch_that_its_value_takes(tmp_path: Path) -> None:
    path = save(tmp_path, parse(BRANCHES, opset=13))
    with pytest.raises(UnsupportedModelError, match="the condition is unknown"):
        load(path)
    fast = load(path, values={"sr": 16000})
    assert [step.operator.label for step in fast.steps] == ["Split"]
    assert fast.input_tensors == ("x",)
    slow = load(path, values={"sr": 8000})
    assert slow.tensors["y"].shape == (8,)


def test_one_value_fills_an_input_of_any_rank(tmp_path: Path) -> None:
    text = "(float[N] x, float[N] w) => (y) { y = Mul(x, w) }"
    program = load(save(tmp_path, parse(text)), dims={"N": 3}, values={"w": 0.5}, weights=True)
    assert program.constants["w"].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ("int64", 0.5, r"'v' is int64\[\], which cannot hold 0.5"),
        ("int8", 200, r"'v' is int8\[\], which cannot hold 200"),
        ("uint8", -1, r"'v' is uint8\[\], which cannot hold -1"),
        ("bool", 2, r"'v' is bool\[\], which cannot hold 2"),
        ("float16", 1e9, r"'v' is float16\[\], which cannot hold"),
        ("float[300, 300]", 1.0, "--value supports at most 65536 elements"),
    ],
)
def test_a_value_that_the_type_does_not_have_is_refused(
    declared: str, value: float, reason: str, tmp_path: Path
) -> None:
    path = save(tmp_path, parse(f"({declared} v) => (y) {{ y = Identity(v) }}"))
    with pytest.raises(BindingError, match=reason):
        load(path, values={"v": value})


def test_a_whole_number_is_taken_to_the_last_digit(tmp_path: Path) -> None:
    path = save(
        tmp_path, parse("(float[1] x, int64 v) => (y) { f = Cast<to=1>(v) y = Add(x, f) }")
    )
    program = load(path, values={"v": 2**60 + 1}, weights=True)
    assert program.constants["f"] == np.float32(2**60)
    assert load(path, values={"v": True}, weights=True).constants["f"] == 1


def test_only_inputs_take_values(tmp_path: Path) -> None:
    path = save(tmp_path, parse("(float[2] x) => (y) <float[2] w> { y = Add(x, w) }"))
    with pytest.raises(BindingError, match="'w' is not an input of the model; known: 'x'"):
        load(path, values={"w": 1})


def test_a_question_mark_is_no_name(tmp_path: Path) -> None:
    model = parse("(float[A, B] x) => (y) { y = Neg(x) }")
    for dimension in model.graph.input[0].type.tensor_type.shape.dim:
        dimension.dim_param = "?"
    path = save(tmp_path, model)
    with pytest.raises(UnboundDimensionError, match="'x:0', 'x:1'"):
        load(path)
    program = load(path, dims={"x:0": 2, "x:1": 3})
    assert program.tensors["y"].shape == (2, 3)


def test_an_input_of_rank_one_without_a_name_is_not_one_of_no_rank(tmp_path: Path) -> None:
    model = parse("(float[A] x) => (y) { y = Neg(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "?"
    assert open_names(save(tmp_path, model)) == ({"x:0"}, {"x"})
