"""Single operators beside ONNX Runtime: the same results."""

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

import single_steps
from single_steps import MOST_DIFFERENCE, STEPS, measured_row


@pytest.mark.parametrize("name", ["elu", "transposed-4-stride-2", "average-pool-3"])
def test_both_make_the_same(name, monkeypatch, tmp_path):
    monkeypatch.setattr(single_steps, "_ROUND_S", 0.0)
    row = measured_row(name, tmp_path, 1)
    assert row.difference < MOST_DIFFERENCE
    assert row.latency.median > 0


def test_what_the_documentation_speaks_of_is_among_them():
    assert {"sigmoid", "elu"} <= set(STEPS)
    assert any(name.startswith("transposed") for name in STEPS)


def test_a_step_that_is_not_there_is_named(capsys):
    assert single_steps.main(["nothing"]) == 2
    assert "there is no step nothing" in capsys.readouterr().err
