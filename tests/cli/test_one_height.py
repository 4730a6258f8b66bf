"""The same model takes the same height in every command that plans it."""

from pathlib import Path

import onnx
import pytest

from arenite.runtime.lowering.onnx import model as onnx_lowering
from support.command_models import LACKING
from support.tiny_chains import dense_chain
from support.tiny_onnx import parse, save

ROOT = Path(__file__).parents[2]
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
BRANCHES = """(float[1,64] x) => (y) { a = Concat<axis=1>(x, x, x, x)
  b = Concat<axis=1>(x, x, x, x)
  c = ReduceMax<axes=[1]>(a) d = ReduceMax<axes=[1]>(b) y = Add(c, d) }"""
"""Lower in another order than its own."""

MODELS = [
    *sorted((ROOT / "assets").glob("*.onnx")),
    *(LIGHT / f"light_{name}.onnx" for name in ("squeezenet", "shufflenet", "inception_v1")),
]


def heights(run_json, model, tmp_path):
    """Return what each of the four commands says, `compare` twice: of `best` and of them all."""
    (compared,) = run_json("compare", model, "--strategy", "best")["models"]
    (result,) = compared["results"]
    return {
        "plan": run_json("plan", model)["height"],
        "inspect": run_json("inspect", model)["height"],
        "compare": result["height"],
        "compare, lowest": compared["height"],
        "build": run_json("build", model, "-o", tmp_path / "m.arena")["height"],
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.stem)
def test_four_commands_print_one_height(run_json, model, tmp_path):
    assert len(set(heights(run_json, model, tmp_path).values())) == 1


@pytest.mark.parametrize("sizes", [(48, 32, 32, 64), (8, 400, 8), (16,) * 9])
def test_four_commands_print_one_height_of_a_tflite_model(run_json, tmp_path, sizes):
    model = tmp_path / "chain.tflite"
    model.write_bytes(dense_chain(sizes))
    assert len(set(heights(run_json, model, tmp_path).values())) == 1


def test_the_best_order_is_everyones_default(run_json, tmp_path):
    model = save(tmp_path, parse(BRANCHES))
    (height,) = set(heights(run_json, model, tmp_path).values())
    for command in ("plan", "inspect"):
        said = run_json(command, model)
        assert (said["target"], said["order"]) == ("arenite", "best")
        assert run_json(command, model, "--order", "given")["height"] > height
    output = tmp_path / "given.arena"
    assert run_json("build", model, "--order", "given", "-o", output)["height"] > height


def test_a_run_and_a_plan_file_take_that_height_too(run_json, classifier, image, tmp_path):
    (height,) = set(heights(run_json, classifier, tmp_path).values())
    plan, program = tmp_path / "plan.json", tmp_path / "planned.arena"
    run_json("plan", classifier, "-o", plan)
    assert run_json("verify", plan, classifier)["height"] == height
    built = run_json("build", classifier, "--plan", plan, "-o", program)
    assert built["height"] == height
    assert run_json("run", classifier, "--input", image)["arena_bytes"] == height


@pytest.mark.parametrize("command", ["plan", "inspect", "compare"])
def test_a_model_we_cannot_run_is_planned_as_written_with_a_note(run, command, tmp_path):
    model = save(tmp_path, parse(LACKING))
    code, out, err = run(command, model)
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("note: ")
    assert "planned as written, with --target generic" in err
    assert "uint64" in err
    assert "as written" in out


@pytest.mark.parametrize("target", ["generic", "arenite"])
def test_commands_agree_on_a_target_that_is_named(run_json, tmp_path, target):
    model = save(tmp_path, parse(BRANCHES))
    (compared,) = run_json("compare", model, "--target", target, "--strategy", "best")["models"]
    said = [run_json(command, model, "--target", target) for command in ("plan", "inspect")]
    assert {each["height"] for each in (compared, *said)} == {compared["height"]}
    assert {each["target"] for each in (compared, *said)} == {target}


@pytest.fixture
def gradient(tmp_path):
    """ONNX Runtime knows of Gradient's name alone, which shows when its session is made."""
    text = (
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]> '
        "g (float[2] a, float[2] b) => (float[2] c, float[2] d) "
        "{ c = Add(a, b) "
        'd = ai.onnx.preview.training.Gradient<xs=["a"], y="c">(a) }'
    )
    model = tmp_path / "gradient.onnx"
    onnx.save(onnx.parser.parse_model(text), model)
    return model


@pytest.mark.parametrize("command", ["plan", "inspect", "compare"])
def test_what_onnx_runtime_refuses_too_is_planned_as_written(run, gradient, command):
    code, _, err = run(command, gradient)
    assert code == 0
    assert "planned as written, with --target generic: " in err
    assert "rejected by onnxruntime" in err
    code, _, err = run(command, gradient, "--target", "arenite")
    assert code == 1
    assert "no kernel runs" in err


def test_a_program_that_no_session_loads_is_planned_as_written_too(run, gradient, monkeypatch):
    """As where the lowering could not try the operator, and the session does."""
    monkeypatch.setattr(onnx_lowering, "_why_refused", lambda _model: None)
    code, _, err = run("plan", gradient)
    assert code == 0
    assert "note: planned as written, with --target generic: step" in err
    code, _, err = run("plan", gradient, "--target", "arenite")
    assert code == 1
    assert "our runtime does not run it" in err
