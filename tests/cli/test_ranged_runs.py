"""Programs for a range of sizes run at single sizes."""

import json

import numpy as np
import pytest

import arenite
from arenite.pipeline.base import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError, Session
from arenite.strategies import find
from support.edited_programs import edited
from support.tiny_onnx import parse, save, with_random_weights


def test_a_program_runs_at_the_sizes_of_its_inputs(encoder, tmp_path, run, run_json):
    program = tmp_path / "model.arena"
    assert run("build", encoder, "--dim", "seq=1..64", "-o", program)[0] == 0
    assert json.loads(run("run", program, "--json")[1])["sizes"] == {"seq": 64}
    found = json.loads(run("run", program, "--size", "seq=17", "--json")[1])
    assert (found["sizes"], found["outputs"]["y"]["shape"]) == ({"seq": 17}, [17, 16])
    x = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    outputs = {}
    for model, *options in (
        (program,),
        (encoder, "--dim", "seq=1..64"),
        (encoder, "--dim", "seq=5"),
    ):
        out = tmp_path / "out.npz"
        fed = ("--input", f"x={tmp_path / 'x.npy'}", "-o", out)
        sizes = run_json("run", model, *options, *fed)["sizes"]
        assert sizes == ({} if options[-1:] == ["seq=5"] else {"seq": 5})
        with np.load(out) as arrays:
            outputs[model, *options] = arrays["y"].tobytes()
    assert len(set(outputs.values())) == 1
    assert run("run", program, "--size", "seq=17", "--poison")[0] == 0


LEFT = """(float[n,m] x, int64[n,1] k) => (float[n,1] y)
{ a = Neg(x) b = GatherElements<axis=1>(a, k) y = Sigmoid(b) }"""


def test_sizes_may_be_given_one_by_one_also_to_steps_of_onnx_runtime(tmp_path, run):
    path = save(tmp_path, parse(LEFT))
    ranges = ("--dim", "n=1..9", "--dim", "m=2..6")
    said = " ".join(run("plan", path, *ranges)[1].split())
    assert "operators left to ONNX Runtime: 1 GatherElements" in said
    assert "ONNX Runtime allocates in each run, beside the arena: at most what they take" in said
    code, out, _ = run("run", path, *ranges, "--size", "n=3", "--size", "m=4", "--json")
    assert (code, json.loads(out)["sizes"]) == (0, {"n": 3, "m": 4})
    code, _, err = run("run", path, *ranges, "--size", "n=3", "--size", "m=4,n=5")
    assert code == 2
    assert "n is 3 and 5; a run has one size" in err


@pytest.mark.parametrize("size", ["seq=65", "seq=0", "batch=2"])
def test_a_run_outside_the_range_is_refused(encoder, run, size):
    code, _, err = run("run", encoder, "--dim", "seq=1..64", "--size", size)
    assert code == 1
    assert "seq" in err


def test_a_benchmark_measures_along_the_range(encoder, run_json):
    quick = ("--rounds", "1", "--seconds", "0.01", "--against", "onnxruntime")
    found = run_json("bench", encoder, "--dim", "seq=1..64", *quick)
    assert [each["sizes"] for each in found["sizes"]] == [{"seq": 1}, {"seq": 32}, {"seq": 64}]
    for each in found["sizes"]:
        assert {engine["engine"] for engine in each["engines"]} == {"arenite", "onnxruntime"}
        assert all(engine["max_difference"] < 1e-5 for engine in each["engines"])
    assert found["engines"] == found["sizes"][-1]["engines"]
    (one,) = run_json("bench", encoder, "--dim", "seq=1..64", *quick, "--size", "seq=7")["sizes"]
    assert one["sizes"] == {"seq": 7}


def test_a_session_of_a_model_takes_arrays_of_all_sizes(encoder):
    with arenite.Session(encoder, dims={"seq": "1..64"}) as session:
        for seq in (3, 64, 17):
            outputs = session.run({"x": np.ones((seq, 16), np.float32)})
            assert outputs["y"].shape == (seq, 16)
            assert session.sizes == {"seq": seq}


def test_a_program_that_outgrows_its_plan_between_the_ends_is_not_valid(encoder, tmp_path, run):
    reading = Reading(dims={"seq": Dimension("seq", 1, 64)})
    valid = compile_model(encoder, reading)
    assembly = valid.assemble(find("best")(valid.source.problem))

    def bulge(root):
        """Let lengths be seq + (seq - 1) * (64 - seq): right at 1 and at 64, too long between."""
        added, at = root["expressions"], len(root["expressions"])
        for operation, a, b in (
            ("dimension", 0, 0), ("constant", -1, 0), ("add", at, at + 1), ("constant", -1, 0),
            ("multiply", at, at + 3), ("constant", 64, 0), ("add", at + 4, at + 5),
            ("multiply", at + 2, at + 6), ("add", at, at + 7),
        ):  # fmt: skip
            added.append({"operation": operation, "a": a, "b": b})
        for axis in root["axes"]:
            axis["expression"] = len(added) - 1

    program = tmp_path / "wrong.arena"
    program.write_bytes(edited(assembly, lambda root: None))
    assert run("verify", program)[0] == 0
    program.write_bytes(edited(assembly, bulge))
    code, _, err = run("verify", program)
    assert code == 1
    assert "'x' takes 8000 B at seq=3; it was placed with 4096 B" in err


def test_a_benchmark_does_not_set_what_a_run_counts(tmp_path, run_json):
    found = "(float[6, 4] x) => (int64[2, n] y) { y = NonZero(x) }"
    model = save(tmp_path, parse(found))
    quick = ("--rounds", "1", "--seconds", "0.01", "--against", "none")
    measured = run_json("bench", model, *quick)
    assert (measured["dimensions"], measured["sizes"]) == ([], [])


def test_a_program_that_fails_at_some_size_is_not_written(encoder, tmp_path, run, monkeypatch):
    resize = Session.resize

    def refused(session, sizes):
        if 1 < sizes["seq"] < 64:
            raise ProgramError("step 'x': too few rows")
        resize(session, sizes)

    monkeypatch.setattr(Session, "resize", refused)
    code, _, err = run("build", encoder, "--dim", "seq=1..64", "-o", tmp_path / "made.arena")
    assert code == 1
    assert "too few rows" in err
    assert not (tmp_path / "made.arena").exists()


def test_build_and_inspect_state_the_plan_of_lower_sizes(tmp_path, run):
    model = parse("""(float[1,3,h,h] x) => (y) <float[32,3,3,3] a, float[8,32,3,3] b> {
        p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p)
        y = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b) }""")
    path, program = save(tmp_path, with_random_weights(model)), tmp_path / "both.arena"
    code, out, _ = run("build", path, "--dim", "h=8..256:8", "-o", program, "--json")
    assert code == 0
    part, *others = json.loads(out)["subranges"]
    assert part["height"] <= json.loads(out)["arena_bytes"]
    assert json.loads(run("inspect", program, "--json")[1])["subranges"] == [part, *others]
    stated = f"h={part['highest']['h']}: a plan of its own, {part['height']:,} B"
    assert stated in " ".join(run("inspect", program)[1].split())
    assert run("verify", program)[0] == 0
