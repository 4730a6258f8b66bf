"""Training steps beside PyTorch: what the benchmark measures, on little."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make torch)")
pytest.importorskip("sklearn", reason="the extra 'bench' is not installed")

from bench.contests import training  # noqa: E402
from bench.learning import from_scratch, gradients  # noqa: E402
from bench.learning.from_scratch import Learned  # noqa: E402
from bench.learning.gradients import Gradients  # noqa: E402
from bench.zoo.classic import unet  # noqa: E402
from support.contests import run_contest  # noqa: E402


def test_an_error_holds_up_to_three_times_pytorchs():
    assert Gradients("n", 1, 10, 2.9e-6, 2.9e-6, 1e-6).holds
    assert not Gradients("n", 1, 10, 3.1e-6, 1e-6, 1e-6).holds
    assert not Gradients("n", 1, 10, 1e-6, 3.1e-6, 1e-6).holds


def test_gradients_are_compared_whole(monkeypatch):
    monkeypatch.setattr(gradients, "NETWORKS", {"u": (lambda: unet(16), "bce", 2)})
    found = gradients.measured("u")
    assert found.parameters > 1_000_000
    assert 0 < found.ours < 1e-5
    assert 0 < found.native < 1e-5
    assert found.holds


def test_a_network_learns_the_same_in_both():
    found = from_scratch.learned("lenet-300-100", 0, 1)
    assert abs(found.ours - found.pytorch) <= 2
    assert found.ours < found.held_out / 2
    assert found.state_bytes < found.arena_bytes < 2 * found.state_bytes


@pytest.mark.parametrize(("wrong", "code"), [(10, 0), (12, 1)])
def test_what_is_lost_against_pytorch_decides(wrong, code, monkeypatch, capsys):
    monkeypatch.setattr(gradients, "NETWORKS", {})
    monkeypatch.setattr(training, "LIVE", {"u": (lambda: unet(32), "bce")})
    made = [Learned("lenet-5", seed, 180, wrong, 10, 2, 1, 3, 4) for seed in range(5)]
    monkeypatch.setattr(from_scratch, "NETWORKS", {"lenet-5": None})
    monkeypatch.setattr(from_scratch, "learned", lambda _name, seed, _epochs: made[seed])
    assert run_contest("training-steps") == code
    assert "lenet-5" in capsys.readouterr().out
