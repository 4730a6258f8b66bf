"""Steps that ONNX Runtime runs on tensors of our arena."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arenite.pipeline.session import Session
from arenite.runtime import ProgramError
from arenite.runtime.targets.onnxruntime import RunFailedError
from arenite.strategies import find
from support import tiny_onnx
from support.edited_programs import apart, edited

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")


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


def test_a_step_of_another_runtime_has_one_shape(tmp_path: Path):
    def edit(root: Any) -> None:
        x = next(i for i, each in enumerate(root["tensors"]) if each["name"] == "a")
        root["dimensions"] = [{"name": "n", "low": 2, "high": 4}]
        root["expressions"] = [{"operation": "dimension", "a": 0, "b": 0}]
        root["axes"] = [{"tensor": x, "axis": 0, "expression": 0}]

    program = edited(apart(tiny_onnx.save(tmp_path, tiny_onnx.parse(AMONG_OTHERS))), edit)
    with pytest.raises(ProgramError, match="ONNX Runtime, which is unsupported where shapes"):
        Session.of_pieces([program], "sized")
