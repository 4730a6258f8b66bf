"""No arena of a model that the tests make is larger than the figures in the tree state."""

import json

import pytest

from support.byte_figures import FIGURES, compared, without_times, write_models

KEPT = {model["model"]: model for model in json.loads(FIGURES.read_text("utf-8"))["models"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    for package in ("onnx", "onnxruntime", "tflite"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("figures")
    write_models(folder)
    return folder


def test_every_model_has_its_figures(folder):
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} == set(KEPT)


@pytest.mark.parametrize("model", KEPT)
def test_an_arena_neither_grows_nor_shrinks_unnoticed(model, folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = run(*compared(model), "--baseline", FIGURES, "--fail-over", "0%")
    assert code == 0, err
    # Smaller is good news, and belongs in the file: `python -m support.byte_figures` writes it.
    assert without_times(json.loads(out)) == {"models": [KEPT[model]]}


def test_an_arena_that_grew_is_refused(folder, run, monkeypatch, tmp_path):
    model, *_ = KEPT
    smaller = [each | {"height": each["height"] - 1} for each in KEPT[model]["results"]]
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps({"models": [KEPT[model] | {"results": smaller}]}))
    monkeypatch.chdir(folder)
    code, _, err = run(*compared(model), "--baseline", baseline, "--fail-over", "0%")
    assert code == 1
    assert f"{model}: the lowest arena grew from" in err
