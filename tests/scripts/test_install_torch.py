"""The gate gets PyTorch's CPU build or nothing: never the gigabytes of CUDA packages."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install-torch.sh"


@pytest.fixture
def python(tmp_path):
    """A stand-in that has no torch, writes down what it is asked, and fails on request."""

    def make(exit_code: int) -> Path:
        path = tmp_path / "python"
        path.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = -c ] && exit 1\necho "$@" >> "{tmp_path}/asked"\n'
            f'echo "ERROR: No matching distribution" >&2\nexit {exit_code}\n'
        )
        path.chmod(0o755)
        return path

    return make


def test_only_a_cpu_build_is_asked_for(python, tmp_path):
    subprocess.run([SCRIPT, python(0)], check=True, capture_output=True)
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.split()[:3] == ["-m", "pip", "install"]
    (requirement,) = (word for word in asked.split() if word.startswith("torch"))
    assert requirement.startswith("torch==")
    assert requirement.endswith("+cpu")


def test_where_there_is_none_the_gate_goes_on_and_says_what_is_skipped(python):
    done = subprocess.run([SCRIPT, python(1)], check=True, capture_output=True, text=True)
    assert "No matching distribution" in done.stderr
    assert "will be skipped" in done.stderr


def test_a_torch_that_is_there_is_kept(tmp_path):
    path = tmp_path / "python"
    path.write_text('#!/bin/sh\n[ "$1" = -c ] || exit 9\n')
    path.chmod(0o755)
    done = subprocess.run([SCRIPT, path], check=True, capture_output=True, text=True)
    assert not done.stderr
