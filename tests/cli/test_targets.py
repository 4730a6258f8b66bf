"""Plans for what a runtime places, beside the graph as written."""

import json
from dataclasses import fields

import pytest
from tflite import BuiltinOperator as Op

from arenite.cli.main import main
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.choice import TARGETS
from arenite.planner import planfile
from support.shared_material import shared
from support.tiny_chains import dense_chain
from support.tiny_onnx import parse, save
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

HEIGHTS = {"generic": 55_296, "tflm": 55_296, "litert": 108_288, "c": 46_080}


def branch():
    """ABS, then an IF whose branches are operators of subgraphs."""
    names = ("x", "a", "y")
    operators = [TinyOperator(Op.ABS, [0], [1]), TinyOperator(Op.IF, [1, 1], [2], (1, 2))]
    arms = [
        TinySubgraph([TinyTensor("a"), TinyTensor("b")], [TinyOperator(code, [0], [1])], [0], [1])
        for code in (Op.EXP, Op.NEG)
    ]
    return tiny_tflite(TinySubgraph(list(map(TinyTensor, names)), operators, [0], [2]), *arms)


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


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_target_says_what_it_is_and_what_stays_open(target):
    assert TARGETS[target.name] is target
    assert target.summary
    assert target.open_fields <= {field.name for field in fields(Reading)} - {"target"}


@pytest.mark.parametrize(
    ("name", "suffix", "reason"),
    [
        ("arenite", "csv", "a CSV has no operators"),
        ("c", "csv", "a CSV has no operators"),
        ("tflm", "onnx", "TensorFlow Lite Micro runs TFLite models only"),
        ("litert", "onnx", "LiteRT runs TFLite models only"),
        ("onnxruntime", "tflite", "ONNX Runtime runs ONNX models only"),
    ],
)
def test_a_target_says_why_it_takes_no_such_file(name, suffix, reason, tmp_path, run):
    model = tmp_path / f"m.{suffix}"
    model.write_text("id,lower,upper,size\na,0,1,16\n")
    assert reason in TARGETS[name].why_unsupported(model)
    assert TARGETS["generic"].why_unsupported(model) is None
    code, out, err = run("plan", model, "--target", name)
    assert (code, out) == (1, "")
    assert reason in err


@pytest.mark.parametrize("order", ["given", "best"])
def test_an_order_cannot_be_asked_of_a_runtime_that_has_its_own(order, tmp_path, run):
    model = tmp_path / "m.tflite"
    model.write_bytes(dense_chain())
    code, _, err = run("plan", model, "--target", "tflm", "--order", order)
    assert code == 2
    assert "--target tflm decides" in err


def test_operators_of_subgraphs_keep_their_order_unless_another_is_asked_for(
    tmp_path, run, run_json
):
    model = tmp_path / "branch.tflite"
    model.write_bytes(branch())
    said = run_json("plan", model, "--target", "generic")
    assert said["order"] == "given"
    code, _, err = run("plan", model, "--target", "generic", "--order", "best")
    assert code == 1
    assert "keep the given order" in err


def test_records_alone_have_no_order_and_share_nothing(tmp_path, run_json):
    model = tmp_path / "m.csv"
    model.write_text("id,lower,upper,size\na,0,1,16\n")
    said = run_json("plan", model)
    assert (said["target"], said["order"], said["aliases"]) == ("generic", "given", [])
    assert said["fallback"] is None


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


def test_a_missing_file_of_weights_is_an_error_and_no_other_target(tmp_path, refused, run_json):
    model = parse("(float[1, 3, 8, 8] x) => (y) <float[4, 3, 3, 3] w> { y = Conv(x, w) }")
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = tensor.EXTERNAL
    tensor.external_data.add(key="location", value="tiny.data")
    path = save(tmp_path, model)
    said = refused("plan", path)
    assert "constant 'w': external file 'tiny.data' is missing; put" in said
    assert "'tiny.data'" in refused("build", path, "-o", tmp_path / "m.arena")
    assert run_json("plan", path, "--target", "generic")["height"] > 0


def test_a_constant_too_large_to_work_out_leaves_the_graph_as_written(tmp_path, run):
    text = "(float[1] x) => (y) <int64[1] n = {100000000000}> { r = ConstantOfShape(n) "
    code, out, err = run("plan", save(tmp_path, parse(f"{text} y = Add(x, r) }}")))
    assert (code, "as written" in out) == (0, True)
    assert "constant 'r': ConstantOfShape computes 400,000,000,000 B of it" in err
