"""Plans for what a runtime places, beside the graph as written."""

import json

import pytest

from arenite.cli.main import main
from arenite.planner import planfile
from support.shared_material import shared

HEIGHTS = {"generic": 55_296, "tflm": 55_296, "litert": 108_288}


@pytest.fixture(params=HEIGHTS)
def target(request):
    if request.param == "litert":
        pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")
    return request.param


def test_a_plan_names_its_target_and_is_verified_against_the_targets_records(
    target, tmp_path, capsys
):
    model = shared("models/tflite/vww_96_int8.tflite")
    path = tmp_path / "plan.json"
    assert main(["plan", str(model), "--target", target, "-o", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["target"], said["height"]) == (target, HEIGHTS[target])
    assert planfile.read(path).target == target
    assert main(["verify", str(path), str(model)]) == 0


def test_what_a_target_decides_cannot_be_asked_for(tmp_path, capsys):
    model = tmp_path / "m.tflite"
    model.write_bytes(b"")
    assert main(["plan", str(model), "--target", "tflm", "--align", "32"]) == 2
    assert "--target tflm decides" in capsys.readouterr().err


def test_a_model_of_another_format_is_refused(tmp_path, capsys):
    model = tmp_path / "m.onnx"
    model.write_bytes(b"not a TFLite file")
    assert main(["plan", str(model), "--target", "tflm"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_plan_file_for_an_unknown_target_is_not_verified_against_a_model(tmp_path, capsys):
    model = tmp_path / "m.csv"
    model.write_text("id,lower,upper,size\na,0,1,16\n")
    path = tmp_path / "plan.json"
    assert main(["plan", str(model), "-o", str(path)]) == 0
    path.write_text(path.read_text().replace('"generic"', '"toaster"'))
    assert main(["verify", str(path)]) == 0
    assert main(["verify", str(path), str(model)]) == 1
    assert "target is 'toaster'" in capsys.readouterr().err
