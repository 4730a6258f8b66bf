"""The gate gets ExecuTorch where PyTorch is, without the packages that nothing here imports."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install-executorch.sh"


@pytest.fixture
def python(tmp_path):
    """A stand-in that has some packages, writes down what it is asked, and fails on request."""

    def make(*, has: str, exit_code: int = 0) -> Path:
        path = tmp_path / "python"
        path.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = -c ]; then for each in {has}; do\n'
            '  case "$2" in *"$each"*) exit 0;; esac\ndone; exit 1; fi\n'
            f'echo "$@" >> "{tmp_path}/asked"\n'
            f'echo "ERROR: No matching distribution" >&2\nexit {exit_code}\n'
        )
        path.chmod(0o755)
        return path

    return make


def run(python: Path) -> str:
    return subprocess.run([SCRIPT, python], check=True, capture_output=True, text=True).stderr


def test_it_is_asked_for_in_one_version_and_alone(python, tmp_path):
    assert run(python(has='"import torch"')) == ""
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert "--no-deps" in asked.split()
    assert any(word.startswith("executorch==") for word in asked.split())


def test_without_pytorch_it_is_not_asked_for(python, tmp_path):
    assert "will be skipped" in run(python(has="nothing"))
    assert not (tmp_path / "asked").exists()


def test_what_is_there_is_kept(python, tmp_path):
    assert run(python(has='"import torch" find_spec')) == ""
    assert not (tmp_path / "asked").exists()


def test_where_there_is_none_the_gate_goes_on_and_says_what_is_skipped(python):
    said = run(python(has='"import torch"', exit_code=1))
    assert "No matching distribution" in said
    assert "will be skipped" in said
