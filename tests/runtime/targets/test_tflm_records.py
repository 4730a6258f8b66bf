from dataclasses import replace
from pathlib import Path

import pytest
from tflite import BuiltinOperator

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.placement.verification import OverlapError
from arenite.runtime.targets.tflm import read_tflm_model, tflm_problem
from arenite.strategies import find
from support.tiny_chains import dense_chain, dense_subgraph, running_sum
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    return path


def stateful() -> bytes:
    return tiny_tflite(
        TinySubgraph(
            [
                TinyTensor("unused", (4,)),
                TinyTensor("weights", (4,), data=b"abcd"),
                TinyTensor("x", (20,)),
                TinyTensor("state", (64,), variable=True),
                TinyTensor("y", (16,)),
            ],
            [TinyOperator(BuiltinOperator.SVDF, [2, 1, 3], [4])],
            [2],
            [4],
        )
    )


def test_inputs_end_at_their_last_use_and_outputs_live_to_the_end(tmp_path: Path):
    problem = tflm_problem(written(tmp_path, dense_chain((8, 4, 4, 8))))
    lifetimes = [(record.name, record.start, record.end) for record in problem.records]
    assert lifetimes == [("x0", 0, 1), ("x1", 0, 2), ("x2", 1, 3), ("x3", 2, 3)]


def test_sizes_are_rounded_up_to_sixteen_and_variables_lie_in_the_tail(tmp_path: Path):
    problem = tflm_problem(written(tmp_path, stateful()))
    assert [(record.name, record.size, record.alignment) for record in problem.records] == [
        ("x", 32, 16),
        ("y", 16, 16),
    ]


def test_kernel_scratch_lives_while_its_operator_runs(tmp_path: Path):
    model = read_tflm_model(written(tmp_path, stateful()))
    (scratch,) = (record for record in model.problem({"SVDF_0": 40}).records if not record.tensors)
    assert (scratch.size, scratch.start, scratch.end) == (48, 0, 1)


def test_a_resource_variable_and_its_handle_lie_in_the_tail(tmp_path: Path):
    problem = tflm_problem(written(tmp_path, running_sum()))
    sizes = {record.name: record.size for record in problem.records}
    assert sizes == {"x": 16, "old": 16, "y": 16}


def test_a_subgraph_that_is_entered_twice_is_refused(tmp_path: Path):
    inner = replace(dense_subgraph((8, 8)), name="inner")
    main = TinySubgraph(
        [TinyTensor("is", (1,)), *dense_subgraph((8, 8)).tensors[:2]],
        [TinyOperator(BuiltinOperator.IF, [0, 1], [2], [1, 1])],
        [0, 1],
        [2],
    )
    with pytest.raises(
        UnsupportedModelError, match=r"'inner/x0': its subgraph is called by two operators"
    ):
        tflm_problem(written(tmp_path, tiny_tflite(main, inner)))


def test_each_tensor_of_the_file_gets_an_offset_and_the_rest_is_left_alone(tmp_path: Path):
    model = read_tflm_model(written(tmp_path, stateful()))
    problem = model.problem({"SVDF_0": 40})
    plan = find("no-reuse")(problem)
    by_name = {
        record.name: offset for record, offset in zip(problem.records, plan.offsets, strict=True)
    }
    unused_at_zero = 0
    assert model.offsets(problem, plan) == (unused_at_zero, -1, by_name["x"], -1, by_name["y"])


def test_a_plan_that_overlaps_is_refused_before_it_is_written(tmp_path: Path):
    model = read_tflm_model(written(tmp_path, dense_chain()))
    problem = model.problem()
    plan = replace(find("best")(problem), offsets=(0, 0, 0, 0))
    with pytest.raises(OverlapError):
        model.offsets(problem, plan)
