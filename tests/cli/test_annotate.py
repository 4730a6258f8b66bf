"""`arenite annotate`, and `arenite verify` of what it writes."""

import json

import onnx
import pytest

from arenite.cli.main import main
from support.tiny_onnx import parse, save

TEXT = "(float[8,8] x) => (y) {a = Exp(x) b = MatMul(a, a) c = Relu(b) y = MatMul(c, c)}"


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, parse(TEXT))


def test_the_plan_is_written_and_verified(model, capsys):
    output = model.with_name("annotated.onnx")
    assert main(["annotate", str(model), "-o", str(output), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["optimal"] is True
    assert main(["verify", str(output), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["height"] == result["height"] == 512
    assert checked["target"] == "generic"


def test_a_plan_file_of_the_graph_as_written_is_taken(model, tmp_path, capsys):
    plan, output = tmp_path / "plan.json", tmp_path / "annotated.onnx"
    options = ["--target", "generic", "--order", "given", "--alias", "none", "--align", "64"]
    assert main(["plan", str(model), *options, "-o", str(plan)]) == 0
    assert main(["annotate", str(model), "--plan", str(plan), "-o", str(output)]) == 0
    assert "written" in capsys.readouterr().out
    assert main(["verify", str(output)]) == 0
    assert main(["annotate", str(model), "--plan", str(plan), "--align", "8", "-o", "x"]) == 2


def test_a_plan_for_our_runtime_is_refused_by_the_name_of_its_file(model, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert main(["plan", str(model), "-o", str(plan)]) == 0
    assert main(["annotate", str(model), "--plan", str(plan), "-o", str(tmp_path / "o")]) == 1
    assert "plan.json: the plan is for 'arenite'" in capsys.readouterr().err


def test_a_broken_annotation_is_refused(model, capsys):
    output = model.with_name("annotated.onnx")
    assert main(["annotate", str(model), "-o", str(output)]) == 0
    proto = onnx.load(output)
    for value in proto.graph.value_info:
        for entry in value.metadata_props:
            if entry.key.endswith("mem_offset"):
                entry.value = "0"
    output.write_bytes(proto.SerializeToString())
    assert main(["verify", str(output)]) == 1
    assert "error: " in capsys.readouterr().err


def test_a_model_without_metadata_says_what_writes_them(model, capsys):
    assert main(["verify", str(model)]) == 1
    assert "arenite annotate" in capsys.readouterr().err


def test_an_annotated_model_takes_no_model_beside_it(model):
    assert main(["verify", str(model), str(model)]) == 2


def test_what_is_not_onnx_is_refused(tmp_path, capsys):
    path = tmp_path / "m.csv"
    path.write_text("id,lower,upper,size\na,0,1,4\n")
    assert main(["annotate", str(path), "-o", str(tmp_path / "o")]) == 1
    assert "supports ONNX only" in capsys.readouterr().err
