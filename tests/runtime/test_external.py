"""Steps that ONNX Runtime runs on tensors of our arena."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arenite
from arenite.pipeline.session import Session
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError
from arenite.runtime.targets.onnxruntime import RunFailedError
from arenite.strategies import find
from support import tiny_onnx
from support.edited_programs import apart, edited

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")


def test_inputs_that_onnx_runtime_gives_up_on_are_a_typed_error_and_the_next_run_is_right(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    model = tiny_onnx.parse(
        "(float[4,3] x, int64[4,1] k) => (float[4,1] y) { y = GatherElements<axis=1>(x, k) }"
    )
    session = Session(tiny_onnx.save(tmp_path, model), strategy=find("best"))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(RunFailedError, match="step 'GatherElements_0' failed in ONNX Runtime"):
        session.run({"x": x, "k": np.array([[9], [0], [0], [0]])})
    found = session.run({"x": x, "k": np.array([[1], [0], [2], [1]])})["y"]
    assert found.tolist() == [[1], [3], [8], [10]]
    assert capfd.readouterr() == ("", "")


AMONG_OTHERS = """(float[4,3] x, int64[4,1] k) => (float[4,1] y)
{ a = Neg(x) b = GatherElements<axis=1>(a, k) y = Sigmoid(b) }"""


def with_turns(folder: Path, *, rows: int) -> bytes:
    """Return a program that says that each step runs, that of another runtime by so many rows."""

    def edit(root: Any) -> None:
        root["turns"] = [
            {"step": i, "first": 0, "count": rows if each["kernel_type"] == "External" else 0}
            for i, each in enumerate(root["steps"])
        ]

    return edited(apart(tiny_onnx.save(folder, tiny_onnx.parse(AMONG_OTHERS))), edit)


def test_turns_run_steps_of_another_runtime_in_their_place(tmp_path: Path):
    with Session.of_pieces([with_turns(tmp_path, rows=0)], "turns") as session:
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        found = session.run({"x": x, "k": np.array([[1], [0], [2], [1]])})["y"]
        assert np.allclose(found[:, 0], 1 / (1 + np.exp([1.0, 3.0, 8.0, 10.0])))
        assert "onnxruntime" in session.backends()
        assert all(each.nanoseconds > 0 for each in session.profile())


def test_a_step_of_another_runtime_does_not_run_by_rows(tmp_path: Path):
    with pytest.raises(ProgramError, match="runs by rows, and makes none"):
        Session.of_pieces([with_turns(tmp_path, rows=1)], "rows")


COUNTED = """(float[n,m] x, int64[n,1] k) => (float[p] y, float[p,p] z)
<int64[1] one = {1}, int64[1] zero = {0}, float least = {0.0}>
{ a = Neg(x) b = GatherElements<axis=1>(a, k) c = Squeeze(b, one) good = Greater(c, least)
  places = NonZero(good) at = Squeeze(places, zero) d = Gather(c, at) y = Tanh(d)
  e = Einsum<equation="i,j,j->ij">(y, y, y) z = Neg(e) }"""


def test_steps_of_another_runtime_have_the_sizes_of_a_run(tmp_path: Path):
    path = tiny_onnx.save(tmp_path, tiny_onnx.parse(COUNTED))
    ranges = {"n": Dimension("n", 1, 9), "m": Dimension("m", 2, 6)}
    peer = onnxruntime.InferenceSession(path)
    generator = np.random.default_rng(0)
    found = set()
    with arenite.Session(path, dims=ranges, guard=True) as session:
        assert session.backends().count("onnxruntime") == 2
        for rows, columns in ((9, 6), (1, 2), (5, 3), (9, 2), (1, 6), (5, 3)):
            feeds = {
                "x": generator.standard_normal((rows, columns)).astype(np.float32),
                "k": generator.integers(0, columns, (rows, 1)),
            }
            made = session.run(feeds)
            for own, other in zip(made.values(), peer.run(None, feeds), strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-6)
            found.add(len(made["y"]))
    assert len(found) > 2


def test_a_step_of_another_runtime_writes_no_more_than_its_result_has_at_a_size(tmp_path: Path):
    def edit(root: Any) -> None:
        sized = [i for i, each in enumerate(root["tensors"]) if each["name"] in ("b", "y")]
        root["dimensions"] = [{"name": "n", "low": 2, "high": 4}]
        root["expressions"] = [{"operation": "dimension", "a": 0, "b": 0}]
        root["axes"] = [{"tensor": each, "axis": 0, "expression": 0} for each in sorted(sized)]

    program = edited(apart(tiny_onnx.save(tmp_path, tiny_onnx.parse(AMONG_OTHERS))), edit)
    feeds = {"x": np.ones((4, 3), np.float32), "k": np.zeros((4, 1), np.int64)}
    with Session.of_pieces([program], "sized", guard=True) as session:
        assert session.run(feeds)["y"].shape == (4, 1)
        session.resize(n=2)
        with pytest.raises(RunFailedError, match="step 'GatherElements_1'"):
            session.run(feeds)
