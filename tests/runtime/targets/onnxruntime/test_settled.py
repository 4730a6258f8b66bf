"""Plans that hold in another process."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from arenite.planner import planfile
from arenite.runtime.targets.onnxruntime import (
    PlannedSession,
    onnxruntime_problem,
    stock_options,
    stock_session,
)
from arenite.runtime.targets.onnxruntime import settled as settled_module
from arenite.runtime.targets.onnxruntime.library import StatusError
from arenite.runtime.targets.onnxruntime.settled import settle
from arenite.strategies import find
from support import tiny_onnx

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

NUM_HEADS = 8
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

BRANCHES_INSIDE = """(bool on, float[1,64] x) => (y) {
    y = If(on) <
        then_branch = g () => (float[1,64] t) { a = Exp(x) b = Sin(x) c = Cos(x) d = Concat <axis=0> (a, b, c) e = ReduceSum <keepdims=0> (d) t = Mul(x, e) },
        else_branch = h () => (float[1,64] u) { f = Neg(x) u = Abs(f) }
    >
}"""  # noqa: E501


def heads(folder: Path) -> Path:
    """Return a network of convolutions that ends in as many outputs of different sizes.

    ONNX Runtime's optimiser adds a node to each, in an order that no two processes share.
    """
    each = range(NUM_HEADS)
    weights = [f"float[{8 + 8 * i},16,3,3] w{i}, float[4,{8 + 8 * i},1,1] v{i}" for i in each]
    nodes = [f"c{i} = Conv(b, w{i}) r{i} = Relu(c{i}) y{i} = Conv(r{i}, v{i})" for i in each]
    outputs = ", ".join(f"y{i}" for i in each)
    model = tiny_onnx.parse(
        f"(float[1,8,16,16] x) => ({outputs}) <float[16,8,3,3] stem, {', '.join(weights)}>"
        f"{{ a = Conv(x, stem) b = Relu(a) {' '.join(nodes)} }}"
    )
    return tiny_onnx.save(folder, tiny_onnx.with_random_weights(model))


def in_another_process(code: str, *arguments: Any, seed: int) -> str:
    """Return what the code prints, run with other hashes, threads and addresses."""
    threads = {"OMP_NUM_THREADS": str(seed), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | threads | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMAND = "from runpy import run_module; run_module('arenite', run_name='__main__')"


def test_a_plan_made_in_one_process_holds_in_others(tmp_path: Path):
    model, plan = heads(tmp_path), tmp_path / "plan.json"
    in_another_process(
        COMMAND, "plan", model, "--target", "onnxruntime", "-o", plan, "--json", seed=1
    )
    for seed in (2, 3):
        said = in_another_process(COMMAND, "verify", plan, model, seed=seed)
        assert said.startswith("valid: ")
    session = PlannedSession(model, planfile.read(plan).plan)
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 8, 16, 16), np.float32)}
    for _ in range(2):
        found = session.run(None, feeds)
        expected = stock_session(model, stock_options()).run(None, feeds)
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    assert session.num_outside == 0


@pytest.mark.parametrize(
    ("name", "bound"), [("light_resnet50", 5_218_304), ("light_shufflenet", 2_885_120)]
)
def test_of_two_orders_the_one_that_needs_less_is_taken(name: str, bound: int):
    # The longest branches first are best for one of these networks, last for the other.
    assert onnxruntime_problem(LIGHT / f"{name}.onnx").lower_bound == bound


def test_a_session_takes_a_plan_for_either_order():
    path = LIGHT / "light_shufflenet.onnx"
    plan = find("best")(onnxruntime_problem(path))
    session = PlannedSession(path, plan)
    (value,) = session.get_inputs()
    session.run(None, {value.name: np.zeros(value.static_shape or (), np.float32)})
    session.run(None, {value.name: np.zeros(value.static_shape or (), np.float32)})
    assert (session.arena_bytes, session.num_outside) == (plan.height, 0)


@pytest.mark.parametrize("is_on", [True, False])
def test_branches_of_a_subgraph_are_sorted_too(
    tmp_path: Path, is_on: bool, caplog: pytest.LogCaptureFixture
):
    path = tiny_onnx.save(tmp_path, tiny_onnx.parse(BRANCHES_INSIDE))
    feeds = {"on": np.array(is_on), "x": np.linspace(-1, 1, 64, dtype=np.float32)[None]}
    session = PlannedSession(path, strategy=find("best"))
    (expected,) = stock_session(path, stock_options()).run(None, feeds)
    for _ in range(2):
        assert session.run(None, feeds)[0].tobytes() == expected.tobytes()
    assert session.num_outside == 0
    assert not caplog.records


@pytest.mark.parametrize("deepest_first", [True, False])
@pytest.mark.parametrize("is_inner", [True, False])
def test_the_order_depends_on_what_nodes_read_alone(deepest_first: bool, is_inner: bool):
    text = """(float[4] x) => (y, z) {
        a = Neg(x) b = Exp(a) c = Sin(b) d = Cos(a) e = Add(c, d) f = Abs(b)
        y = Mul(e, f) g = Sqrt(d) z = Tanh(g)
    }"""
    orders = set()
    for seed in range(8):
        graph = tiny_onnx.parse(text).graph
        nodes = list(graph.node)
        random.Random(seed).shuffle(nodes)
        del graph.node[:]
        graph.node.extend(nodes)
        settle(graph, deepest_first=deepest_first, is_inner=is_inner)
        orders.add(tuple(node.op_type for node in graph.node))
    (order,) = orders
    ran = order if is_inner else order[::-1]
    assert [ran.index(op) for op in ("Neg", "Exp", "Sin", "Add", "Mul")] == sorted(
        ran.index(op) for op in ("Neg", "Exp", "Sin", "Add", "Mul")
    )
    if not is_inner:
        assert (ran.index("Sin") < ran.index("Cos")) is deepest_first


def test_what_the_orders_need_on_disk_is_given_back_after_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = heads(tmp_path)
    monkeypatch.setattr(settled_module.tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    session = PlannedSession(path, strategy=find("best"))
    assert set(tmp_path.iterdir()) != before
    session.run(None, {"x": np.zeros((1, 8, 16, 16), np.float32)})
    assert set(tmp_path.iterdir()) == before
    PlannedSession(path, strategy=find("best"))  # never run
    onnxruntime_problem(path)
    assert set(tmp_path.iterdir()) == before


def test_a_model_that_cannot_be_optimised_into_a_file_runs_in_onnx_runtimes_own_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise StatusError("no space")

    monkeypatch.setattr(settled_module, "_optimise", refuse)
    assert onnxruntime_problem(heads(tmp_path)).lower_bound > 0


def test_where_the_optimised_file_is_refused_a_warning_names_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def damage(graph: Any, **_: Any) -> None:
        graph.node[0].op_type = "NoSuchOperator"

    monkeypatch.setattr(settled_module, "settle", damage)
    path = heads(tmp_path)
    assert onnxruntime_problem(path).lower_bound > 0
    assert "may not hold in another process" in caplog.text
    assert str(path) in caplog.text
    assert "arenite-onnxruntime-" not in caplog.text
