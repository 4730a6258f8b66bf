"""Single operators beside ONNX Runtime: the same results."""

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

from bench.contests.runtime import MOST_DIFFERENCE, STEPS, step_row
from support.contests import asked, run_contest


@pytest.mark.parametrize("name", ["elu", "transposed-4-stride-2", "average-pool-3"])
def test_both_make_the_same(name, tmp_path):
    given = asked("single-steps", tmp_path, "--rounds", "1")
    row = step_row(name, given, 0.0)
    assert row["difference"] < MOST_DIFFERENCE
    assert row["latency"].median > 0
    assert not given.failures


def test_what_the_documentation_speaks_of_is_among_them():
    assert {"sigmoid", "elu"} <= set(STEPS)
    assert any(name.startswith("transposed") for name in STEPS)


def test_a_step_that_is_not_there_is_named(capsys):
    assert run_contest("single-steps", "nothing") == 2
    assert "there is no step nothing" in capsys.readouterr().err
