"""Variables of TFLite files are states where the file says clearly what they hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from tflite import BuiltinOperator as Op

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.importers.tflite import read_tflite, read_tflite_model
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import TensorKind
from support.tiny_chains import LENGTH, Main, handle, initial, numbers, running_sum
from support.tiny_tflite import TinyOperator, TinySubgraph, tiny_tflite


def written(folder: Path, data: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(data)
    return path


def test_a_variable_is_a_state_with_the_constant_of_the_initial_subgraph(tmp_path: Path) -> None:
    program = read_tflite(written(tmp_path, running_sum()), weights=True)
    state = program.tensors["s"]
    assert (state.kind, state.shape, state.size) == (TensorKind.STATE, (LENGTH,), 4 * LENGTH)
    np.testing.assert_array_equal(program.constants[program.initial["s"]], [1, 2, 3, 4])
    assert [(step.name, step.inputs, step.outputs) for step in program.steps] == [
        ("READ_VARIABLE_2", ("s",), ("old",)),
        ("ADD_3", ("old", "x"), ("y",)),
        ("ASSIGN_VARIABLE_4", ("y",), ("s",)),
    ]
    assert program.notes == ()


def test_without_weights_the_program_is_planned_with_the_same_states(tmp_path: Path) -> None:
    path = written(tmp_path, running_sum())
    program = read_tflite(path)
    assert program.steps == read_tflite(path, weights=True).steps
    records = {each.name: (each.start, each.end) for each in liveness(program).records}
    assert records["s"] == (0, 3)


def test_as_the_file_has_it_a_handle_takes_no_bytes(tmp_path: Path) -> None:
    model = read_tflite_model(written(tmp_path, running_sum()))
    assert model.program.tensors["s"].size == 0
    assert model.operators["READ_VARIABLE_2"] == (0, 2)
    assert model.operators["CALL_ONCE_0/init/ASSIGN_VARIABLE_1"] == (1, 1)


def test_handles_of_one_name_lead_to_one_state(tmp_path: Path) -> None:
    main = Main("x").variable("s").read("s", "old").step(Op.ADD, "old x", "y").variable("s")
    program = read_tflite(written(tmp_path, main.assign("s", "y").model("y", s=[1, 2, 3, 4])))
    states = [each for each in program.tensors.values() if each.kind is TensorKind.STATE]
    assert [state.name for state in states] == ["s"]
    assert program.steps[-1].outputs == program.steps[0].inputs == ("s",)


def plain() -> Main:
    return Main("x").variable("s").read("s", "old").step(Op.ADD, "old x", "y").assign("s", "y")


def computed_start() -> bytes:
    once = initial(s=[1, 2, 3, 4])
    tensors = [*once.tensors, numbers("computed")]
    operators = [TinyOperator(Op.NEG, [1], [2]), *once.operators]
    return tiny_tflite(plain().subgraph("y"), replace(once, tensors=tensors, operators=operators))


def start_that_is_no_constant() -> bytes:
    once = initial(s=[1, 2, 3, 4])
    tensors = [once.tensors[0], numbers("empty")]
    return tiny_tflite(plain().subgraph("y"), replace(once, tensors=tensors))


def start_of_another_shape() -> bytes:
    return plain().model("y", s=[1, 2])


def start_after_use() -> bytes:
    main = plain().subgraph("y")
    operators = [*main.operators[1:], main.operators[0]]
    return tiny_tflite(replace(main, operators=operators), initial(s=[1, 2, 3, 4]))


def handle_in_another_operator() -> bytes:
    main = plain().step("peek", "s", "z")
    return main.model("z", s=[1, 2, 3, 4])


def handle_as_output() -> bytes:
    main = plain().subgraph("y")
    return tiny_tflite(replace(main, outputs=[1]), initial(s=[1, 2, 3, 4]))


def handle_without_a_name() -> bytes:
    main = Main("x", once=())
    main.add(handle("s"))
    return tiny_tflite(main.read("s", "y").subgraph("y"))


def use_in_a_branch() -> bytes:
    main = plain().subgraph("y")
    branch = TinySubgraph(
        [numbers("a"), handle("s")], [TinyOperator(Op.ASSIGN_VARIABLE, [1, 0], [])], [0], [], "b"
    )
    return tiny_tflite(main, initial(s=[1, 2, 3, 4]), branch)


REFUSED = {
    "computed": (computed_start, "'CALL_ONCE': NEG is unsupported in its subgraph"),
    "no constant": (
        start_that_is_no_constant,
        "'CALL_ONCE': the initial value of a variable is not",
    ),
    "shape": (start_of_another_shape, r"'ASSIGN_VARIABLE': .* differ .*\(4,\) and \(2,\)"),
    "order": (start_after_use, "'CALL_ONCE': CALL_ONCE follows a use"),
    "handle": (handle_in_another_operator, "'peek': a variable's handle as operand"),
    "output": (handle_as_output, "'VAR_HANDLE': a handle as input or output"),
    "nameless": (handle_without_a_name, "'READ_VARIABLE': the variable has no VAR_HANDLE"),
    "branch": (use_in_a_branch, "'ASSIGN_VARIABLE': variables in subgraphs"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_clearly_a_state_is_planned_as_written_and_not_run(
    tmp_path: Path, name: str
) -> None:
    make, complaint = REFUSED[name]
    path = written(tmp_path, make())
    assert read_tflite(path).tensors["s"].size == 0
    with pytest.raises(UnsupportedModelError, match=complaint):
        read_tflite(path, weights=True)
