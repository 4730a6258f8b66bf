"""Files whose tensors state shapes that their operators do not make, as audio front ends do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from ai_edge_litert.interpreter import Interpreter
from tflite import BuiltinOperator as Op

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.programs.program import Program
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import build
from support.tiny_signals import dilated, framed, front_end, integers
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite


def written(folder: Path, model: TinySubgraph) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(tiny_tflite(model))
    return path


def by_litert(path: Path, array: np.ndarray) -> np.ndarray:
    interpreter = Interpreter(str(path))
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, array.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, array)
    interpreter.invoke()
    found: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return found


def check(path: Path, folder: Path, shape: tuple[int, ...], **options: object) -> None:
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    with Session(build(path, folder, **options)) as session:
        (found,) = session.run({"x": array}).values()
    expected = by_litert(path, array)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("frames", [1, 8, 15])
def test_windows_make_what_they_make_and_not_what_the_file_states(
    tmp_path: Path, frames: int
) -> None:
    check(written(tmp_path, front_end(64, frames)), tmp_path, (1, 64))


@pytest.mark.parametrize("samples", [8, 40])
def test_frames_whose_indices_follow_from_a_shape_are_gathered(
    tmp_path: Path, samples: int
) -> None:
    path = written(tmp_path, framed(samples))
    check(path, tmp_path, (1, samples))
    steps = compile_model(path).program.steps
    assert {step.operator.label for step in steps} == {"Gather", "Unary"}


@pytest.mark.parametrize("stated", [4, 8])
def test_a_dilated_convolution_makes_what_it_makes(tmp_path: Path, stated: int) -> None:
    check(written(tmp_path, dilated(stated)), tmp_path, (1, 1, 16, 2))


def test_a_front_end_of_open_length_runs_on_the_length_given(tmp_path: Path) -> None:
    path = written(tmp_path, front_end(1, 1))
    check(path, tmp_path, (1, 100), reading=Reading(shapes={"x": (1, 100)}))


def test_a_signal_shorter_than_a_window_is_refused_before_there_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorsError, match=r"larger than \(1, 1\); .* --shape"):
        compile_model(written(tmp_path, front_end(1, 1)))


def test_all_tensors_behind_have_the_shapes_that_follow(tmp_path: Path) -> None:
    program: Program = compile_model(written(tmp_path, front_end(64, 8))).program
    shapes = {step.name: program.tensors[step.outputs[0]].shape for step in program.steps}
    assert shapes == {
        "CONV_2D_1": (1, 1, 15, 3),
        "ABS_2": (1, 1, 15, 3),
        "REDUCE_MAX_3": (1, 1, 15),
    }


def test_an_operator_of_unknown_meaning_keeps_the_shape_that_is_stated(tmp_path: Path) -> None:
    model = front_end(64, 15)
    operators = [*model.operators[:2], replace(model.operators[2], code="theirs")]
    model = replace(model, operators=[*operators, model.operators[3]])
    with pytest.raises(UnsupportedOperatorsError, match="'theirs_2'"):
        compile_model(written(tmp_path, model))


@pytest.mark.parametrize("blocks", [(1 << 14, 1 << 14), (0, 2), (-1, -2)])
def test_blocks_without_end_are_refused_at_once(tmp_path: Path, blocks: tuple[int, int]) -> None:
    model = dilated(8)
    tensors = [integers("blocks", *blocks) if t.name == "blocks" else t for t in model.tensors]
    with pytest.raises(UnsupportedOperatorsError, match=r"'SPACE_TO_BATCH_ND_0'.*blocks"):
        compile_model(written(tmp_path, replace(model, tensors=tensors)))


def test_operands_that_do_not_fit_are_refused_with_the_reason(tmp_path: Path) -> None:
    tensors = [TinyTensor("x", (2, 3)), TinyTensor("w", (4, 3), data=bytes(12)), TinyTensor("y")]
    model = TinySubgraph(tensors, [TinyOperator(Op.ADD, [0, 1], [2])], [0], [2])
    with pytest.raises(UnsupportedOperatorsError, match=r"\(2, 3\) and \(4, 3\) do not broadcast"):
        compile_model(written(tmp_path, model))


def test_an_operator_with_too_few_inputs_is_refused(tmp_path: Path) -> None:
    model = TinySubgraph(
        [TinyTensor("x"), TinyTensor("y")], [TinyOperator(Op.ADD, [0], [1])], [0], [1]
    )
    with pytest.raises(UnsupportedOperatorsError, match=r"'ADD_0' .* input 1 is missing"):
        compile_model(written(tmp_path, model))
