"""`arenite run`: what it computes, writes and says, and what it refuses."""

import json

import numpy as np
import pytest

from arenite.planner import planfile
from support.command_models import LACKING, LEFT_TO_ONNXRUNTIME
from support.edited_programs import edited_file, read_unwritten
from support.running import assert_same, reference_outputs
from support.shared_material import shared
from support.tiny_onnx import parse, save
from support.tiny_programs import classifier as classifier_program


def written(path):
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture
def program(run, classifier, tmp_path):
    """The program file of the classifier."""
    path = tmp_path / "model.arena"
    assert run("build", classifier, "-o", path)[0] == 0
    return path


@pytest.fixture
def plan(run, classifier, tmp_path):
    """A plan for the classifier."""
    path = tmp_path / "plan.json"
    assert run("plan", classifier, "-o", path)[0] == 0
    return path


def test_outputs_are_written_and_those_of_onnxruntime(run, classifier, image, tmp_path):
    output = tmp_path / "out.npz"
    code, out, err = run("run", classifier, "--input", image, "-o", output)
    assert (code, err) == (0, "")
    assert str(output) in out
    assert_same(written(output), reference_outputs(classifier, {"x": np.load(image)}))


def test_a_program_file_gives_what_its_model_gives(run, classifier, program, image, tmp_path):
    for model, name in ((classifier, "1.npz"), (program, "2.npz")):
        assert run("run", model, "--input", image, "-o", tmp_path / name)[0] == 0
    assert_same(written(tmp_path / "2.npz"), written(tmp_path / "1.npz"), tolerance=0)


def test_all_inputs_come_from_one_file_or_each_by_its_name(run, two_inputs, two_feeds, tmp_path):
    both, arrays = two_feeds
    expected = reference_outputs(two_inputs, arrays)
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    one_by_one = (f"a={tmp_path / 'a.npy'}", "--input", f"b={tmp_path / 'b.npy'}")
    for feeds in ((both,), one_by_one):
        output = tmp_path / "out.npz"
        assert run("run", two_inputs, "--input", *feeds, "-o", output)[0] == 0
        assert_same(written(output), expected)
        output.unlink()


def test_json_says_what_ran(run_json, classifier, image, tmp_path):
    output = tmp_path / "out.npz"
    found = run_json("run", classifier, "--input", image, "-o", output, "--top", "3")
    assert found["model"] == str(classifier)
    assert found["arena_bytes"] > 0
    assert set(found["backends"]) == {"arenite"}
    assert found["outputs"] == {"y": {"shape": [1, 12], "dtype": "float32"}}
    assert (found["output"], found["trace"], found["steps"]) == (str(output), None, [])
    scores = written(output)["y"][0]
    assert [each["class"] for each in found["top"]] == list(np.argsort(-scores)[:3])
    assert [each["score"] for each in found["top"]] == sorted(map(float, scores))[:-4:-1]


def test_json_has_no_number_that_json_does_not_know(run_json, tmp_path):
    model = save(tmp_path, parse("(float[1,12] x) => (y) { y = Neg(x) }"))
    np.save(tmp_path / "nan.npy", np.full((1, 12), np.nan, np.float32))
    top = run_json("run", model, "--input", tmp_path / "nan.npy")["top"]
    assert {each["score"] for each in top} == {None}


def test_labels_are_printed_beside_the_scores(run, classifier, image, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"thing {number}" for number in range(12)))
    code, out, _ = run("run", classifier, "--input", image, "--labels", labels, "--top", "2")
    assert code == 0
    assert out.count("thing ") == 2


def test_labels_that_do_not_fit_are_refused_before_the_run(refused, classifier, image, tmp_path):
    labels, output = tmp_path / "labels.txt", tmp_path / "out.npz"
    labels.write_text("cat\ndog\n")
    options = ("--input", image, "--labels", labels, "-o", output)
    assert "names 2 classes; the model scores 12" in refused("run", classifier, *options)
    assert not output.exists()


def test_labels_are_refused_for_a_model_without_scores(refused, two_inputs, two_feeds, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("cat\ndog\n")
    said = refused("run", two_inputs, "--input", two_feeds[0], "--labels", labels)
    assert "scores no classes" in said
    assert "2x3, 2x3" in said


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_top_is_at_least_one(misused, classifier, image, number):
    misused("run", classifier, "--input", image, "--top", number)


@pytest.mark.parametrize(
    "options",
    [("--mean", "1,2"), ("--mean", "a"), ("--mean", "nan"), ("--std", "0"), ("--std", "1,1,-1"),
     ("--std", "inf")],
)  # fmt: skip
def test_mean_and_deviation_are_one_number_or_three(misused, classifier, image, options):
    assert options[0] in misused("run", classifier, "--input", image, *options)


def test_without_input_a_model_runs_on_random_numbers_and_that_is_said(run, two_inputs, tmp_path):
    files = [tmp_path / name for name in ("first.npz", "second.npz")]
    for file in files:
        code, out, err = run("run", two_inputs, "-o", file, "--profile", "--json")
        assert code == 0
        assert err == "note: no --input: the model runs on random numbers, seed 0\n"
        assert json.loads(out)["input_seed"] == 0
    first, second = map(np.load, files)
    assert all(first[name].any() and (first[name] == second[name]).all() for name in first.files)


def test_with_input_no_seed_is_stated(run_json, two_inputs, two_feeds):
    assert run_json("run", two_inputs, "--input", two_feeds[0])["input_seed"] is None


@pytest.mark.parametrize("to", ["c", "onnxruntime", "tflm"])
def test_export_of_a_program_asks_for_its_model(run, refused, two_inputs, tmp_path, to):
    program = tmp_path / "x.arena"
    assert run("build", two_inputs, "-o", program)[0] == 0
    said = refused("export", program, "--to", to, "-o", tmp_path / "out")
    assert "give the ONNX or TFLite model" in said


def test_a_missing_input_is_named_with_its_shape(misused, two_inputs, two_feeds, tmp_path):
    np.save(tmp_path / "a.npy", two_feeds[1]["a"])
    said = misused("run", two_inputs, "--input", f"a={tmp_path / 'a.npy'}")
    assert "missing option --input for: b=float32 2x3" in said


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((1, 8, 8, 3), np.float32), "has the shape 1x8x8x3; expected 1x3x8x8"),
        (np.zeros((1, 3, 8, 8)), "is float64; expected float32"),
        (np.zeros((1, 3, 8, 8), ">f4"), "is >f4; expected float32"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(refused, classifier, tmp_path, array, message):
    output, feed = tmp_path / "out.npz", tmp_path / "x.npy"
    np.save(feed, array)
    before = sorted(tmp_path.iterdir())
    assert message in refused("run", classifier, "--input", feed, "-o", output)
    assert sorted(tmp_path.iterdir()) == before


def test_a_damaged_input_file_is_refused(refused, classifier, image, tmp_path):
    image.write_bytes(image.read_bytes()[:-1])
    before = sorted(tmp_path.iterdir())
    options = ("-o", tmp_path / "out.npz", "--trace", tmp_path / "trace.json")
    assert "image.npy: is damaged" in refused("run", classifier, "--input", image, *options)
    assert sorted(tmp_path.iterdir()) == before


def test_a_tflite_model_is_run(run_json, tmp_path):
    model = shared("models/tflite/hello_world_float.tflite")
    np.save(tmp_path / "x.npy", np.full((1, 1), np.pi / 2, np.float32))
    output = tmp_path / "out.npz"
    found = run_json("run", model, "--input", tmp_path / "x.npy", "-o", output)
    (shape,) = found["outputs"].values()
    assert shape == {"shape": [1, 1], "dtype": "float32"}
    (sine,) = written(output).values()
    assert sine == pytest.approx(1, abs=0.1)  # as well as the network knows it


def test_a_model_without_its_plan_file_is_refused(refused, classifier, image, tmp_path):
    assert "absent.json" in refused(
        "run", classifier, "--input", image, "--plan", tmp_path / "absent.json"
    )


def test_a_trace_has_an_event_a_step(run_json, classifier, image, tmp_path):
    path = tmp_path / "trace.json"
    found = run_json("run", classifier, "--input", image, "--trace", path)
    assert (found["trace"], found["steps"]) == (str(path), [])
    events = json.loads(path.read_text())["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert len(steps) == sum(found["backends"].values())
    assert all(event["dur"] > 0 for event in steps)
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks == set(found["backends"])


def test_a_profile_tells_of_every_step(run, run_json, classifier, image):
    steps = run_json("run", classifier, "--input", image, "--profile")["steps"]
    assert {step["operator"] for step in steps} >= {"Conv2D", "FullyConnected", "Softmax"}
    assert all(step["nanoseconds"] > 0 and step["bytes"] > 0 for step in steps)
    _, out, _ = run("run", classifier, "--input", image, "--profile")
    assert "share" in out
    assert "Conv2D" in out


def test_poison_leaves_the_outputs_of_a_right_plan(run, classifier, image, tmp_path):
    for name, options in (("1.npz", ()), ("2.npz", ("--poison",))):
        assert run("run", classifier, "--input", image, "-o", tmp_path / name, *options)[0] == 0
    assert_same(written(tmp_path / "2.npz"), written(tmp_path / "1.npz"), tolerance=0)


def test_poison_refuses_outputs_that_depend_on_dead_memory(run, tmp_path):
    path = tmp_path / "wrong.arena"
    path.write_bytes(edited_file(classifier_program(tmp_path, quantised=False), read_unwritten))
    np.save(tmp_path / "image.npy", np.zeros((1, 3, 16, 16), np.float32))
    given = ("run", path, "--input", tmp_path / "image.npy")
    assert run(*given)[0] == 0
    code, _, error = run(*given, "--poison")
    assert code == 1
    assert "'classes' depends on uninitialised memory" in error


def test_poison_refuses_an_index_outside_its_axis(run, tmp_path):
    model = parse("(float[5,2] x, int64[3] i) => (float[3,2] y) { y = Gather(x, i) }")
    given = ["run", save(tmp_path, model)]
    for name, array in {"x": np.zeros((5, 2), np.float32), "i": np.array([0, 5, 1])}.items():
        np.save(tmp_path / f"{name}.npy", array)
        given += ["--input", f"{name}={tmp_path / name}.npy"]
    assert run(*given)[0] == 0
    code, _, error = run(*given, "--poison")
    assert code == 1
    assert "index 5 is not in -5 to 4" in error


def test_a_plan_is_run_as_it_is(run_json, classifier, plan, image, tmp_path):
    height = planfile.read(plan).plan.height
    output = tmp_path / "out.npz"
    found = run_json("run", classifier, "--plan", plan, "--input", image, "-o", output)
    assert found["arena_bytes"] == height
    assert_same(written(output), reference_outputs(classifier, {"x": np.load(image)}))


def test_nothing_is_asked_for_that_the_plan_decides(misused, classifier, plan, image):
    said = misused("run", classifier, "--plan", plan, "--input", image, "--strategy", "no-reuse")
    assert "--plan decides --strategy;" in said


def test_sizes_beside_a_plan_are_checked_as_verify_checks_them(refused, classifier, plan, image):
    for command in (("run", classifier, "--plan", plan, "--input", image),
                    ("verify", plan, classifier)):  # fmt: skip
        said = refused(*command, "--dim", "n=1")
        assert "'n' is not a free dimension of the model" in said


@pytest.mark.parametrize("option", [("--strategy", "no-reuse"), ("--shape", "x=1x3x8x8")])
def test_nothing_is_asked_for_that_the_program_decides(misused, program, image, option):
    said = misused("run", program, "--input", image, *option)
    assert f"the .arena file decides {option[0]};" in said


def test_a_program_file_has_its_plan(misused, program, plan, image):
    assert "--plan" in misused("run", program, "--plan", plan, "--input", image)


def test_a_plan_of_another_model_is_refused(refused, two_inputs, two_feeds, plan):
    said = refused("run", two_inputs, "--plan", plan, "--input", two_feeds[0])
    assert "made for 'tiny.onnx'" in said


def test_a_plan_for_another_target_is_refused(run, refused, classifier, image, tmp_path):
    path = tmp_path / "generic.json"
    assert run("plan", classifier, "--target", "generic", "-o", path)[0] == 0
    said = refused("run", classifier, "--plan", path, "--input", image)
    assert "made for --target generic" in said


def test_a_damaged_program_file_is_refused(refused, program, image):
    program.write_bytes(program.read_bytes()[:-100])
    assert "model.arena" in refused("run", program, "--input", image)


def test_a_model_that_nothing_runs_is_refused(refused, image, tmp_path):
    model = save(tmp_path, parse(LACKING))
    assert "uint64" in refused("run", model, "--input", image)


def test_operators_left_to_onnxruntime_are_counted(run_json, tmp_path):
    model = save(tmp_path, parse(LEFT_TO_ONNXRUNTIME))
    np.save(tmp_path / "x.npy", np.array([[3, 1], [1, 2]], np.float32))
    output = tmp_path / "out.npz"
    found = run_json("run", model, "--input", tmp_path / "x.npy", "-o", output)
    assert found["backends"]["onnxruntime"] == 1
    assert written(output)["y"] == pytest.approx(-5)


def test_an_unknown_strategy_is_refused(refused, classifier, image):
    assert "known: " in refused("run", classifier, "--input", image, "--strategy", "magic")


@pytest.mark.parametrize("option", ["-o", "--trace"])
def test_results_never_overwrite_what_was_read(refused, classifier, plan, image, option):
    for path in (classifier, image, plan):
        before = path.read_bytes()
        said = refused("run", classifier, "--plan", plan, "--input", image, option, path)
        assert "choose another name" in said
        assert path.read_bytes() == before


@pytest.mark.parametrize("option", ["-o", "--trace"])
def test_a_folder_that_does_not_exist_is_noticed_before_the_run(
    refused, classifier, image, tmp_path, option
):
    path = tmp_path / "absent" / "file"
    assert "there is no folder" in refused("run", classifier, "--input", image, option, path)


def test_outputs_and_trace_are_two_files(misused, classifier, image, tmp_path):
    path = tmp_path / "same"
    misused("run", classifier, "--input", image, "-o", path, "--trace", path)
    assert not path.exists()
