"""Operators whose output sizes depend on data: planned at the upper bound, counted in a run."""

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.program import Program
from arenite.planner.sizes import at
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.tiny_onnx import parse, read_text, save

BOXES = """
    (float[1,6,4] boxes, float[1,2,6] scores) => (float[n,3] y) <LIMIT, float overlap = {0.5}> {
        kept = NonMaxSuppression(boxes, scores, most, overlap)
        rows = Cast<to=1>(kept)
        y = Abs(rows)
    }
"""


def shapes(program: Program) -> dict[str, tuple[int, ...]]:
    return {name: tensor.shape for name, tensor in program.tensors.items()}


@pytest.mark.parametrize(("stated", "num_rows"), [(3, 6), (100, 12), (0, 0), (-1, 0)])
def test_boxes_kept_are_planned_for_all_classes_and_images(
    stated: int, num_rows: int, tmp_path: Path
) -> None:
    program = read_text(tmp_path, BOXES.replace("LIMIT", f"int64 most = {{{stated}}}"))
    assert shapes(program)["kept"] == shapes(program)["y"] == (num_rows, 3)
    assert program.steps[0].operator.is_bound
    assert not program.steps[1].operator.is_bound
    assert any(
        note.startswith("NonMaxSuppression") and f"'kept' of int64[{num_rows}x3]" in note
        for note in program.notes
    )


def test_a_limit_of_the_run_bounds_nothing_but_the_boxes_do(tmp_path: Path) -> None:
    text = BOXES.replace("boxes, float", "boxes, int64 most, float").replace("LIMIT, ", "")
    assert shapes(read_text(tmp_path, text))["y"] == (12, 3)


def test_a_limit_left_out_keeps_nothing(tmp_path: Path) -> None:
    text = BOXES.replace("LIMIT, float overlap = {0.5}", "float w = {1}")
    text = text.replace("scores, most, overlap)", "scores)")
    assert shapes(read_text(tmp_path, text))["y"] == (0, 3)


CASES = {
    "elements that are not zero": (
        "(float[4,5] x) => (int64[2,n] y) { y = NonZero(x) }",
        {"x": np.eye(4, 5, dtype=np.float32)},
        (2, 20),
    ),
    "slices that are taken": (
        "(float[4,5] x, bool[3] c) => (float[4,n] y) { y = Compress<axis=-1>(x, c) }",
        {"x": np.ones((4, 5), np.float32), "c": np.array([True, False, True])},
        (4, 3),
    ),
    "elements that are taken": (
        "(float[4,5] x, bool[20] c) => (float[n] y) { y = Compress(x, c) }",
        {"x": np.ones((4, 5), np.float32), "c": np.ones(20, bool)},
        (20,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_run_makes_more_than_was_planned_for(name: str, tmp_path: Path) -> None:
    text, feeds, expected = CASES[name]
    program = read_text(tmp_path, text)
    assert program.tensors["y"].shape == expected
    (found,) = onnx.reference.ReferenceEvaluator(parse(text)).run(None, feeds)
    assert all(a <= b for a, b in zip(found.shape, expected, strict=True))


def test_what_is_known_before_the_run_is_no_bound(tmp_path: Path) -> None:
    text = "(float[4] x) => (y) <bool[4] c = {1,0,1,0}> { k = NonZero(c) s = Squeeze(k) "
    program = read_text(tmp_path, text + "y = Gather(x, s) }")
    assert program.tensors["y"].shape == (2,)
    assert not any(step.operator.is_bound for step in program.steps)


def test_a_bound_is_not_taken_for_the_shape(tmp_path: Path) -> None:
    """How many rows there are is known in the run alone, so nothing may be folded with it."""
    text = BOXES.replace("LIMIT", "int64 most = {3}").replace("y = Abs(rows)", "y = Shape(rows)")
    program = read_text(tmp_path, text.replace("float[n,3] y", "int64[2] y"))
    assert program.steps[-1].operator.label == "Shape"


def test_what_has_no_bound_is_planned_by_what_is_counted(tmp_path: Path) -> None:
    text = "(float[4] x) => (y) { k = NonZero(x) s = Shape(k) y = ConstantOfShape(s) }"
    program = read_text(tmp_path, text)
    assert program.tensors["y"].shape == (1, 4)
    assert [at(length, {"k": 3}) for length in program.tensors["y"].shape] == [1, 3]


def test_a_branch_that_makes_as_much_as_its_data_say_is_planned_and_not_run(
    tmp_path: Path,
) -> None:
    text = """(float[4] x, bool c) => (int64[1,n] y) {
        y = If (c) <
            then_branch = t () => (a) { a = NonZero(x) },
            else_branch = e () => (a) { b = Neg(x) a = NonZero(b) }>
    }"""
    program = read_text(tmp_path, text)
    assert program.tensors["y"].shape == (1, 4)
    with pytest.raises(UnsupportedOperatorsError, match="its output shape depends on the data"):
        compile_model(save(tmp_path, parse(text)))


def test_what_runs_is_as_much_as_its_data_say(tmp_path: Path) -> None:
    model = parse(BOXES.replace("LIMIT", "int64 most = {3}"))
    program = read_onnx(save(tmp_path, model), weights=True)
    (dimension,) = program.dimensions
    assert (dimension.high, dimension.counted_by) == (6, "kept")
    assert shapes(program)["y"] == (6, 3)
    assert [at(program.tensors[name].shape[0], {"kept": 2}) for name in ("kept", "y")] == [2, 2]
    assert any("'kept' of int64[6x3]" in note for note in program.notes)
    assert compile_model(save(tmp_path, model)).source.dimensions == program.dimensions


def test_our_runtime_refuses_what_no_rule_sizes_and_says_what(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[n] y) { k = NonZero(x) s = Squeeze(k) y = Cast<to=1>(s) }"
    path = save(tmp_path, parse(text))
    program = read_onnx(path, weights=True)
    assert program.tensors["y"].shape == (4,)
    assert any("cannot be run: operator 'Squeeze_1'" in note for note in program.notes)
    with pytest.raises(UnsupportedOperatorsError, match="depends on the data") as refused:
        compile_model(path)
    assert [kind for _, kind, _ in refused.value.operators] == ["NonZero"]
