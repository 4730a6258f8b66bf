"""The script for those who come with a model of a zoo, run as its guide says, off line."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "examples" / "least_memory.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("least_memory", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_guide_shows_what_the_script_prints(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_CACHE_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    guide = (ROOT / "docs" / "how-to" / "model-zoo.md").read_text()
    shown = guide.partition("```text\n")[2].partition("```")[0].splitlines()
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in printed if " B " in line and "%" in line] == shown
    assert (tmp_path / "least" / "light_squeezenet.arena").is_file()


def test_a_file_is_taken_with_its_dimensions(script, tmp_path):
    model = tmp_path / "model.onnx"
    assert script.fetched([str(model), "N=1"]) == (model, {"N": 1})


def test_a_file_of_a_repository_is_fetched(script, monkeypatch, tmp_path):
    asked = []

    def hf_hub_download(repository, file):
        asked.append((repository, file))
        return str(tmp_path / file)

    monkeypatch.setitem(
        sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=hf_hub_download)
    )
    found = script.fetched(["owner/name", "model.onnx", "N=1"])
    assert found == (tmp_path / "model.onnx", {"N": 1})
    assert asked == [("owner/name", "model.onnx")]


def test_a_damaged_model_ends_the_script_with_its_reason(tmp_path):
    (tmp_path / "damaged.onnx").write_bytes(b"no model")
    done = subprocess.run(
        [sys.executable, SCRIPT, "damaged.onnx"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: damaged.onnx")
