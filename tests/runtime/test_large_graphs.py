"""The work on the way to a plan grows with the graph, not with its square."""

import sys

import pytest

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from onnx import TensorProto, helper  # noqa: E402

from arenite.pipeline.targets.compiling import compile_model  # noqa: E402
from arenite.planner.placement.verification import verify  # noqa: E402
from arenite.strategies import Best  # noqa: E402
from arenite.strategies.order.best import BestOrder  # noqa: E402

SHAPE = [1, 4, 8, 8]


def chain(length):
    """Functions that each may take the place of the one before: one storage for all."""
    kinds = ("Sigmoid", "Neg", "Abs", "Tanh")
    return [
        helper.make_node(kinds[index % 4], [f"t{index}"], [f"t{index + 1}"])
        for index in range(length)
    ], f"t{length}"


def wide(length):
    """Half of the steps side by side, then a tree of sums."""
    level = [f"b{index}" for index in range(length // 2)]
    nodes = [helper.make_node("Sigmoid", ["t0"], [name]) for name in level]
    while len(level) > 1:
        sums = [f"s{len(nodes) + index}" for index in range(len(level) // 2)]
        nodes += [
            helper.make_node("Add", [one, other], [name])
            for one, other, name in zip(level[::2], level[1::2], sums, strict=False)
        ]
        level = sums + level[len(sums) * 2 :]
    return nodes, level[0]


def calls_to_plan(path, nodes, output):
    """Return how many functions are called on the way from a file to a plan."""
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("t0", output)
    ]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    num_calls = 0

    def count(_frame, _event, _argument):
        nonlocal num_calls
        num_calls += 1

    sys.setprofile(count)
    try:
        problem = compile_model(path, order=BestOrder()).source.problem
        plan = Best()(problem)
        verify(problem, plan)
    finally:
        sys.setprofile(None)
    assert plan.optimal
    return num_calls


@pytest.mark.parametrize("make", [chain, wide])
def test_twice_the_steps_are_twice_the_work(tmp_path, make):
    calls_to_plan(tmp_path / "warm.onnx", *make(16))  # what is imported on the way
    few, many = (calls_to_plan(tmp_path / f"{n}.onnx", *make(n)) for n in (200, 400))
    assert many < 2.2 * few
