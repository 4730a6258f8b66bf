"""What `--dim`, `--shape` and `--value` name: in one model, in several, and in a plan."""

import json

import numpy as np
import onnx
import pytest

from arenite.planner import planfile
from arenite.planner.planfile.errors import WrongTypeError
from support.running import reference_outputs
from support.shared_material import shared
from support.tiny_chains import dense_chain
from support.tiny_onnx import parse, save
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

GAIN = """
    (float[N, 6] x, int64 sr) => (y) <int64 fast = {16000}> {
        is_fast = Equal(sr, fast)
        y = If (is_fast) <
            then_branch = a () => (float[N, 6] t) { t = Exp(x) },
            else_branch = b () => (float[N, 6] e) { h = Neg(x) e = Sqrt(h) }
        >
    }
"""
FIXED = ("--dim", "N=2", "--value", "sr=16000")


@pytest.fixture
def gain(tmp_path):
    return save(tmp_path, parse(GAIN))


def test_a_plan_remembers_the_values_of_inputs(gain, tmp_path, run, run_json):
    plan = tmp_path / "plan.json"
    assert run_json("plan", gain, *FIXED, "-o", plan)["target"] == "arenite"
    assert planfile.read(plan).model.values == {"sr": 16000}
    assert run("verify", plan, gain)[0] == 0
    assert run("build", gain, "--plan", plan, "-o", tmp_path / "m.arena")[0] == 0
    code, _, err = run("verify", plan, gain, "--value", "sr=8000")
    assert code == 1
    assert "plan it again" in err or "not the model's" in err


def test_a_program_with_a_fixed_input_gives_what_feeding_it_gives(gain, tmp_path, run):
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npz"
    assert run("run", gain, *FIXED, "--input", f"x={tmp_path / 'x.npy'}", "-o", out)[0] == 0
    expected = reference_outputs(gain, {"x": x, "sr": np.array(16000)})
    with np.load(out) as found:
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5)


def test_a_run_by_a_plan_takes_the_sizes_that_verify_takes(gain, tmp_path, run):
    plan = tmp_path / "plan.json"
    assert run("plan", gain, *FIXED, "-o", plan)[0] == 0
    np.save(tmp_path / "x.npy", np.ones((2, 6), np.float32))
    fed = ("--input", f"x={tmp_path / 'x.npy'}")
    assert run("run", gain, *fed, "--plan", plan, *FIXED)[0] == 0
    code, _, err = run("run", gain, *fed, "--plan", plan, "--dim", "N=3")
    assert code == 1
    assert "plan it again" in err


@pytest.mark.parametrize("command", ["inspect", "compare", "bench"])
def test_every_command_that_plans_takes_values(command, gain, run):
    quick = {"compare": ("--quick",), "bench": ("--rounds", "1", "--seconds", "0.01")}
    code, out, err = run(command, gain, *FIXED, *quick.get(command, ()))
    assert (code, "planned as written" in err) == (0, False)
    assert "nothing" not in out or command != "bench"


def test_onnx_runtimes_plan_is_of_a_run_with_the_value(gain, tmp_path, run):
    pytest.importorskip("onnxruntime")
    plan = tmp_path / "plan.json"
    code, _, err = run("plan", gain, "--target", "onnxruntime", *FIXED, "-o", plan)
    assert (code, err) == (0, "")
    assert run("verify", plan, gain)[0] == 0
    code, _, err = run("plan", gain, "--target", "onnxruntime", "--dim", "N=2", "--value", "r=1")
    assert code == 1
    assert "'r' is not an input of the model" in err
    code, _, err = run("plan", gain, "--target", "onnxruntime", *FIXED[:2], "--value", "sr=0.5")
    assert code == 1
    assert "which cannot hold 0.5" in err


def test_the_planned_session_is_measured_with_the_value(gain, run_json):
    pytest.importorskip("onnxruntime")
    engines = "onnxruntime,onnxruntime-planned"
    brief = ("--rounds", "1", "--seconds", "0.01")
    _, *others = run_json("bench", gain, *FIXED, "--against", engines, *brief)["engines"]
    assert [each["engine"] for each in others] == engines.split(",")
    # Exp of random numbers, not the roots of negative ones.
    assert all(each["max_difference"] < 1e-5 for each in others)


def test_an_exported_model_does_not_take_the_fixed_input(gain, tmp_path, run, run_json):
    pytest.importorskip("onnxruntime")
    exported = tmp_path / "exported.onnx"
    run_json("export", gain, "--to", "onnxruntime", *FIXED, "-o", exported)
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    found = reference_outputs(exported, {"x": x})
    expected = reference_outputs(gain, {"x": x, "sr": np.array(16000)})
    np.testing.assert_array_equal(found["y"], expected["y"])
    for value, reason in (("r=1", "'r': is not an input"), ("sr=0.5", "cannot hold 0.5")):
        code, _, err = run(
            "export", gain, "--to", "onnxruntime", *FIXED[:2], "--value", value, "-o", exported
        )
        assert code == 1
        assert str(gain) in err
        assert reason in err or reason.replace(":", "") in err


def test_a_fixed_input_takes_its_own_dimensions_along(tmp_path, run_json):
    pytest.importorskip("onnxruntime")
    text = "(float[N, 6] x, float[K, 1] gain) => (y) { h = Mul(x, gain) y = Exp(h) }"
    path, exported = save(tmp_path, parse(text)), tmp_path / "exported.onnx"
    dims = ("--dim", "N=2", "--dim", "K=1", "--value", "gain=0.5")
    run_json("export", path, "--to", "onnxruntime", *dims, "-o", exported)
    x = np.ones((2, 6), np.float32)
    np.testing.assert_allclose(reference_outputs(exported, {"x": x})["y"], np.exp(x / 2))


def test_weights_beside_a_model_with_a_fixed_input_come_into_the_export(tmp_path, run_json):
    pytest.importorskip("onnxruntime")
    model = parse("(float[2] x, float[2] gain) => (y) { h = Mul(x, gain) y = Add(h, w) }")
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    model.graph.initializer.append(tensor)
    path = save(tmp_path, model)
    exported = tmp_path / "elsewhere.onnx"
    fix = ("export", path, "--to", "onnxruntime", "--value", "gain=2", "-o", exported)
    (tmp_path / "w.bin").write_bytes(np.array([3, 4], np.float32).tobytes())
    run_json(*fix)
    (tmp_path / "w.bin").unlink()
    x = np.ones(2, np.float32)
    assert reference_outputs(exported, {"x": x})["y"].tolist() == [5, 6]


def test_an_export_for_microcontrollers_takes_no_value(tmp_path, misused):
    path = tmp_path / "m.tflite"
    path.write_bytes(dense_chain())
    said = misused("export", path, "--to", "tflm", "-o", tmp_path / "o.tflite", "--value", "x=1")
    assert "--value are for --to onnxruntime" in " ".join(said.split())


def test_compression_judges_with_the_value(tmp_path, run):
    text = """(float[1, 64] x, int64 n) => (y) <float[64, 32] w> {
        f = Cast<to=1>(n) h = MatMul(x, w) y = Mul(h, f) }"""
    model = parse(text)
    weights = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    model.graph.initializer[0].raw_data = weights.tobytes()
    path = save(tmp_path, model)
    code, out, err = run("compress", path, "--bits", "4", "-o", tmp_path / "o.arena",
                         "--value", "n=3", "--json")  # fmt: skip
    assert (code, err) == (0, "")
    assert [stage["error"] for stage in json.loads(out)["stages"]] != [None]


@pytest.mark.parametrize("text", ["sr", "sr=", "=3", "sr=fast", "sr=nan", "sr=1e999"])
def test_a_value_is_a_number(text, gain, misused):
    assert "is not INPUT=NUMBER, such as sr=16000" in " ".join(
        misused("plan", gain, "--value", text).split()
    )


@pytest.mark.parametrize("value", ["true", '"a"', "[1]", "1" + "0" * 40])
def test_a_plan_whose_values_are_no_numbers_is_refused(value, gain, tmp_path, run):
    plan = tmp_path / "plan.json"
    run("plan", gain, *FIXED, "-o", plan)
    plan.write_text(plan.read_text().replace('"sr": 16000', f'"sr": {value}'))
    with pytest.raises(WrongTypeError, match="sr"):
        planfile.read(plan)


def test_a_name_that_one_of_the_models_has_is_enough(gain, tmp_path, run):
    (tmp_path / "b").mkdir()
    other = save(tmp_path / "b", parse("(float[2, 6] x) => (y) { y = Exp(x) }"))
    csv = tmp_path / "c.csv"
    csv.write_text("id,lower,upper,size\na,0,1,16\n")
    code, _, err = run("compare", gain, other, csv, *FIXED, "--quick")
    assert (code, err) == (0, "")
    code, _, err = run("compare", gain, other, *FIXED, "--dim", "batch=1", "--quick")
    assert code == 1
    assert "'batch' is a dimension or an input of none of the models" in err


def test_one_model_must_have_what_is_named(gain, run):
    code, _, err = run("compare", gain, *FIXED, "--dim", "batch=1", "--quick")
    assert code == 1
    assert "'batch' is not a free dimension of the model" in err


def test_sizes_that_a_tflite_file_does_not_take_are_refused(tmp_path, refused):
    path = tmp_path / "open.tflite"
    tensors = [TinyTensor("x", (1, 4), signature=(-1, 4)), TinyTensor("y", (1, 4))]
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, [TinyOperator(0, [0, 0], [1])], [0], [1])))
    assert "a length is at least 1" in refused("plan", path, "--shape", "x=0x4")
    assert "have no names, use --shape" in refused("plan", path, "--dim", "n=1")
    path.write_bytes(dense_chain())
    assert "is not an input" in refused("plan", path, "--shape", "x=2x4")
    assert "cannot be fixed" in refused("plan", path, "--value", "x=1")


def test_a_shape_that_a_tflite_file_leaves_open_is_planned_and_remembered(tmp_path, run):
    path, plan = tmp_path / "open.tflite", tmp_path / "plan.json"
    tensors = [TinyTensor("x", (1, 40), signature=(-1, 40)), TinyTensor("y", (1, 40))]
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, [TinyOperator(0, [0, 0], [1])], [0], [1])))
    given = ("--target", "generic", "--shape", "x=3x40")
    code, out, err = run("plan", path, *given, "--json", "-o", plan)
    assert (code, err, json.loads(out)["lower_bound"]) == (0, "", 128)
    assert run("verify", plan, path)[0] == 0


def test_silero_runs_as_with_its_rate_fed(tmp_path, run):
    model = shared("models/onnx/silero_vad.onnx")
    sizes = ("--shape", "input=1x512", "--shape", "state=2x1x128", "--value", "sr=16000")
    random = np.random.default_rng(0)
    feeds = {
        "input": random.standard_normal((1, 512)).astype(np.float32) / 10,
        "state": np.zeros((2, 1, 128), np.float32),
    }
    np.savez(tmp_path / "in.npz", **feeds)
    out = tmp_path / "out.npz"
    code, _, err = run("run", model, *sizes, "--input", tmp_path / "in.npz", "-o", out)
    assert (code, err) == (0, "")
    expected = reference_outputs(model, {**feeds, "sr": np.array(16000)})
    with np.load(out) as found:
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5)
