"""`arenite fit --weights rest`: tokens a second as a function of bytes."""

import onnx
import pytest

from bench.zoo.decoders import language_model
from support.decoders import DIMS

FLASH = 80e6


@pytest.fixture
def decoder(tmp_path):
    path = tmp_path / "decoder.onnx"
    onnx.save(language_model(2, 128, 2, vocabulary=256, most=64), path)
    return path


def test_the_command_says_tokens_a_second_as_a_function_of_bytes(decoder, run, run_json, misused):
    dims = [each for name, value in DIMS.items() for each in ("--dim", f"{name}={value}")]
    given = ("fit", decoder, *dims, "--weights", "rest", "--link", "80MB/s")
    frontier = run_json(*given, "--measure")["frontier"]
    totals = [each["total"] for each in frontier]
    assert totals == sorted(totals, reverse=True)
    assert len(totals) == len(set(totals)) == 5
    for each in frontier:
        assert each["total"] == each["height"] + each["resident_weights"]
        assert each["run_ms"] >= 1000 * each["loaded_weights"] / FLASH
        assert each["measured_ms"] > 0
    found = run_json(*given, "--budget", totals[2])
    assert found["budget"] == totals[2] >= found["total"]
    assert found["run_ms"] <= frontier[2]["run_ms"]
    code, out, _ = run(*given, "--budget", "50%")
    assert code == 0
    assert "tokens/s, predicted" in out
    assert "of arena and weights" in out
    assert "--slowdown" in misused(*given, "--slowdown", "10%")
