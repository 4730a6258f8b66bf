"""`arenite build`, and the way of a plan: made, built, run and verified."""

import json

import numpy as np
import pytest

from arenite.planner import planfile
from arenite.runtime import Session, processor_name
from support.command_models import LACKING, LEFT_TO_ONNXRUNTIME
from support.running import assert_same, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights
from support.tiny_signals import front_end
from support.tiny_tflite import tiny_tflite

FORKED = """(float[n,64] x) => (y) { a = Concat<axis=1>(x, x) b = Concat<axis=1>(a, a)
  c = ReduceMax<axes=[1]>(b) d = Concat<axis=1>(x, x, x) e = ReduceMax<axes=[1]>(d)
  y = Add(c, e) }"""


@pytest.fixture
def forked(tmp_path):
    """A model with a free dimension whose branches can run in several orders."""
    return save(tmp_path, parse(FORKED))


@pytest.fixture
def program(tmp_path):
    """Where the program is written."""
    return tmp_path / "model.arena"


def test_a_program_is_written_and_described(run, classifier, program):
    code, out, err = run("build", classifier, "-o", program)
    assert (code, err) == (0, "")
    assert "1 Conv2D" in out
    with Session(program) as session:
        assert [port.name for port in session.inputs] == ["x"]


def test_what_cannot_run_is_refused_before_there_is_a_file(run, refused, program, tmp_path):
    path = tmp_path / "front_end.tflite"
    path.write_bytes(tiny_tflite(front_end(1, 1)))
    said = refused("build", path, "-o", program)
    assert "'CONV_2D_1' (CONV_2D): window is larger than (1, 1)" in said
    assert sorted(tmp_path.iterdir()) == [path]
    code, _, err = run("plan", path)
    assert (code, "note: planned as written" in err) == (0, True)
    assert run("build", path, "--shape", "x=1x64", "-o", program)[0] == 0
    Session(program).close()


def test_what_a_file_states_of_its_origin_is_shown_escaped(run, run_json, classifier, program):
    run("build", classifier, "-o", program)
    digest = run_json("inspect", program)["digest"]
    other = f"{digest[:-1]}\x11"
    program.write_bytes(program.read_bytes().replace(digest.encode(), other.encode()))
    code, out, err = run("inspect", program)
    assert (code, err) == (0, "")
    assert f"{digest[:-1]}\\x11 " in out


def test_json_says_what_was_built(run_json, classifier, program):
    found = run_json("build", classifier, "-o", program, "--strategy", "no-reuse")
    assert found.items() >= {
        "model": str(classifier), "output": str(program), "strategy": "no-reuse",
        "file_bytes": program.stat().st_size, "optimal": False, "notes": [],
    }.items()  # fmt: skip
    assert found["operators"]["Conv2D"] == 1
    assert sum(found["operators"].values()) == found["num_steps"]
    assert found["arena_bytes"] > found["lower_bound"]
    with Session(program) as session:
        assert session.arena_bytes == found["arena_bytes"]


def test_the_same_model_gives_the_same_file(run, classifier, tmp_path):
    first, second = tmp_path / "1.arena", tmp_path / "2.arena"
    for path in (first, second):
        assert run("build", classifier, "-o", path)[0] == 0
    assert first.read_bytes() == second.read_bytes()


def test_operators_left_to_onnxruntime_are_noted(run, run_json, program, tmp_path):
    model = save(tmp_path, parse(LEFT_TO_ONNXRUNTIME))
    (note,) = run_json("build", model, "-o", program)["notes"]
    assert "Det" in note
    assert note in run("build", model, "-o", program)[1]


@pytest.mark.parametrize("order", ["given", "best"])
def test_a_plan_is_made_built_run_and_verified(run, run_json, forked, program, tmp_path, order):
    plan, output, feed = tmp_path / "plan.json", tmp_path / "out.npz", tmp_path / "x.npy"
    options = ("--dim", "n=3", "--order", order)
    planned = run_json("plan", forked, *options, "-o", plan)
    assert planned["target"] == "arenite"
    built = run_json("build", forked, "--plan", plan, "-o", program)
    assert (built["arena_bytes"], built["strategy"]) == (planned["height"], planned["strategy"])
    inputs = {"x": np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)}
    np.save(feed, inputs["x"])
    for ran in ((program,), (forked, "--plan", plan)):
        found = run_json("run", *ran, "--input", feed, "-o", output)
        assert found["arena_bytes"] == planned["height"]
        with np.load(output) as stored:
            assert_same(dict(stored), reference_outputs(forked, inputs))
    code, out, _ = run("verify", plan, forked)
    assert (code, out.startswith("valid: ")) == (0, True)


def test_a_plan_file_is_verified_against_the_program_it_is_for(run, refused, forked, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("plan", forked, "--dim", "n=3", "-o", plan)[0] == 0
    said = refused("verify", plan, forked, "--dim", "n=4")
    assert "record 'a'" in said
    assert "plan it again" in said


def test_a_plan_for_steps_the_model_does_not_have_is_stale(
    run, refused, classifier, program, tmp_path
):
    plan = tmp_path / "plan.json"
    assert run("plan", classifier, "-o", plan)[0] == 0
    stated = json.loads(plan.read_text())
    stated["order"][0] = "renamed"  # as if another version had lowered the model
    plan.write_text(json.dumps(stated))
    for command in (
        ("build", classifier, "--plan", plan, "-o", program),
        ("verify", plan, classifier),
    ):
        assert "plan it again" in refused(*command)
    assert not program.exists()


def test_a_plan_of_a_changed_model_is_refused(run, refused, classifier, program, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("plan", classifier, "-o", plan)[0] == 0
    save(tmp_path, parse(FORKED))
    said = refused("build", classifier, "--plan", plan, "-o", program)
    assert "made for 'tiny.onnx'" in said
    assert not program.exists()


def test_a_plan_for_another_target_is_refused(run, refused, classifier, program, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("plan", classifier, "--target", "generic", "-o", plan)[0] == 0
    said = refused("build", classifier, "--plan", plan, "-o", program)
    assert "made for --target generic" in said
    assert "--target arenite" in said
    assert not program.exists()


@pytest.mark.parametrize(
    "option",
    [("--strategy", "best"), ("--order", "best"), ("--capacity", "1MiB"), ("--seed", "1"),
     ("--time-limit", "1"), ("--dim", "n=1"), ("--shape", "x=1x3x8x8")],
)  # fmt: skip
def test_nothing_is_asked_for_that_the_plan_decides(
    run, misused, classifier, program, tmp_path, option
):
    plan = tmp_path / "plan.json"
    assert run("plan", classifier, "-o", plan)[0] == 0
    said = misused("build", classifier, "--plan", plan, "-o", program, *option)
    assert f"--plan decides {option[0]};" in said
    assert not program.exists()


def test_a_capacity_below_the_bound_is_impossible_and_writes_nothing(refused, classifier, program):
    said = refused("build", classifier, "-o", program, "--capacity", "64")
    assert "no plan fits 64 B" in said
    assert not program.exists()


def test_a_capacity_that_a_strategy_misses_is_not_called_impossible(
    run_json, refused, classifier, program
):
    bound = run_json("build", classifier, "-o", program)["lower_bound"]
    before = program.read_bytes()
    options = ("--capacity", str(bound), "-o", program)
    assert "one may exist" in refused("build", classifier, "--strategy", "no-reuse", *options)
    assert program.read_bytes() == before
    assert run_json("build", classifier, *options)["arena_bytes"] == bound


def test_free_dimensions_are_named_with_what_to_write(refused, forked, program):
    said = refused("build", forked, "-o", program)
    assert "'n'" in said
    assert "--dim" in said
    assert not program.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.onnx", None, "cannot be read"),
        ("broken.onnx", b"garbage", "broken.onnx"),
        ("broken.tflite", b"\x00\x00\x00\x1cTFL3garbage", "broken.tflite"),
        ("records.csv", b"id,lower,upper,size\na,0,1,3\n", "lists records only"),
        ("model.arena", b"built already", "give the ONNX or"),
    ],
)
def test_what_is_no_model_is_refused(refused, program, tmp_path, name, content, message):
    path = tmp_path / "models" / name
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    assert message in refused("build", path, "-o", program)
    assert not program.exists()


def test_a_model_that_nothing_runs_is_refused(refused, program, tmp_path):
    model = save(tmp_path, parse(LACKING))
    assert "uint64" in refused("build", model, "-o", program)
    assert not program.exists()


def test_the_model_and_the_plan_are_not_overwritten(run, misused, refused, classifier, tmp_path):
    plan, link = tmp_path / "plan.json", tmp_path / "link.arena"
    assert run("plan", classifier, "-o", plan)[0] == 0
    for path in (classifier, plan):
        before = path.read_bytes()
        arguments = ("build", classifier, "--plan", plan, "-o")
        assert "must end in .arena" in misused(*arguments, path)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        assert "choose another name" in refused(*arguments, link)
        assert path.read_bytes() == before


def test_the_output_must_be_named(misused, classifier):
    assert "--output" in misused("build", classifier)


def test_plans_are_for_our_runtime_unless_it_cannot_run_the_model(run, tmp_path):
    path = tmp_path / "plan.json"
    model = save(tmp_path, parse(LACKING))
    code, _, err = run("plan", model, "-o", path)
    assert code == 0
    assert err.startswith("note: planned as written, with --target generic: ")
    assert err.count("\n") == 1
    assert "uint64" in err
    assert planfile.read(path).target == "generic"
    assert run("verify", path, model)[0] == 0


@pytest.mark.parametrize(
    "option", [("--alias", "all"), ("--boundary", "exclude"), ("--align", "16")]
)
def test_what_only_the_graph_as_written_takes_is_planned_so(run, classifier, tmp_path, option):
    path = tmp_path / "plan.json"
    code, _, err = run("plan", classifier, *option, "-o", path)
    assert code == 0
    assert "note: planned as written" in err
    assert "--alias are about the graph" in err
    assert planfile.read(path).target == "generic"


def test_json_says_why_a_plan_is_not_for_our_runtime(run, classifier):
    for option, fallback in ((("--alias", "all"), True), ((), False)):
        code, out, _ = run("plan", classifier, *option, "--json")
        assert code == 0
        assert (json.loads(out)["fallback"] is not None) == fallback


def test_a_target_that_is_named_is_not_given_up(refused, tmp_path):
    model = save(tmp_path, parse(LACKING))
    assert "uint64" in refused("plan", model, "--target", "arenite", "-o", tmp_path / "p.json")
    assert not (tmp_path / "p.json").exists()


WIDE_THEN_NARROW = """(float[1,32,28,28] x) => (z)
    <float[32,32,3,3] a, float[256,32,1,1] b, float[16,256,1,1] c>
    { p = Conv<pads=[1,1,1,1]>(x, a) q = Conv(p, b) r = Relu(q) z = Conv(r, c) }"""


@pytest.mark.parametrize("option", [["--kernels", "direct"], ["--kernels", "fastest"], ["--tune"]])
def test_kernels_may_be_chosen_or_measured(run_json, program, tmp_path, option):
    path = save(tmp_path, with_random_weights(parse(WIDE_THEN_NARROW)))
    built = run_json("build", path, "-o", program, *option)
    is_tuned = "--tune" in option
    assert built["tuned_on"] == (processor_name() if is_tuned else None)
    assert (processor_name().encode() in program.read_bytes()) is is_tuned
    assert built["tiles"] == {"direct": {}, "fastest": {"6": 1}}.get(option[-1], built["tiles"])
    assert built["height"] == run_json("plan", path)["height"]
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 32, 28, 28), np.float32)}
    with Session(program) as session:
        assert_same(session.run(feeds), reference_outputs(path, feeds), 2e-5)


def test_what_runs_by_tiles_is_told(run, program, tmp_path):
    path = save(tmp_path, with_random_weights(parse(WIDE_THEN_NARROW)))
    assert "1 convolution by 6 x 6" in run("build", path, "-o", program)[1]
    said = run("build", path, "-o", program, "--tune")[1]
    assert f"tuned on   {processor_name()}: " in said
    assert "elsewhere  1 convolution by 6 x 6" in said
    assert "tiles" not in run("build", path, "-o", program, "--kernels", "direct")[1]


def test_a_plan_decides_the_kernels(run, classifier, program, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("plan", classifier, "-o", plan)[0] == 0
    code, _, err = run("build", classifier, "--plan", plan, "--tune", "-o", program)
    assert code == 2
    assert "--plan decides --tune;" in err


def test_inputs_and_outputs_of_the_caller_lie_in_a_memory_of_their_own(
    classifier, tmp_path, run_json, misused
):
    outputs, sizes = [], []
    for boundary in ("include", "exclude"):
        path = tmp_path / f"{boundary}.arena"
        said = run_json("build", classifier, "--boundary", boundary, "-o", path)
        with Session(path, poison=0xA5) as session:
            feeds = random_feeds(session)
            outputs.append({name: each.tobytes() for name, each in session.run(feeds).items()})
            sizes.append({each.name: each.size for each in session.memories})
    assert outputs[0] == outputs[1]
    assert set(sizes[1]) == {"arena", "caller"}
    assert sizes[1]["arena"] < sizes[0]["arena"]
    assert said["arena_bytes"] == sum(sizes[1].values())
    refused = ("--boundary", "exclude", "--memory", "fast=1MiB")
    assert "goes without --memory" in misused("build", classifier, *refused, "-o", path)
