"""`arenite bench`: what it measures and says, and what it refuses."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from arenite.cli.commands import bench as command
from arenite.cli.console.observer import TERMINAL
from arenite.pipeline.base.errors import EngineError
from arenite.pipeline.contest import rounds, worker
from arenite.pipeline.contest.engines import ENGINES, Engine
from arenite.pipeline.contest.rounds import Contest, Measured, Sample, measure
from support.command_models import LACKING
from support.shared_material import shared
from support.tiny_onnx import parse, save

BRIEFLY = ("--seconds", "0.01", "--rounds", "1")


def test_json_says_what_was_measured(run_json, classifier):
    found = run_json("bench", classifier, *BRIEFLY)
    assert found.items() >= {
        "model": str(classifier), "threads": 1, "rounds": 1, "interrupted": False
    }.items()  # fmt: skip
    own, other = found["engines"]
    assert (own["engine"], other["engine"]) == ("arenite", "onnxruntime")
    for each in (own, other):
        latency = each["latency_ms"]
        assert 0 < latency["min"] <= latency["median"] <= latency["max"]
        assert each["load_ms"] > 0
        assert each["peak_rss_bytes"] > 1_000_000
    assert own["arena_bytes"] > 0
    assert other["arena_bytes"] is None
    assert (own["ratio"], own["max_difference"]) == (1, 0)
    assert other["ratio"] == pytest.approx(
        other["latency_ms"]["median"] / own["latency_ms"]["median"]
    )
    assert other["max_difference"] < 1e-5


def test_free_dimensions_are_bound_for_every_engine(run_json, tmp_path):
    model = save(tmp_path, parse("(float[n,4] x) => (y) { y = Neg(x) }"))
    _, other = run_json("bench", model, "--dim", "n=3", *BRIEFLY)["engines"]
    assert other["max_difference"] == 0


def test_ours_can_be_measured_alone(run, run_json, classifier):
    (own,) = run_json("bench", classifier, "--against", "none", *BRIEFLY)["engines"]
    assert own["engine"] == "arenite"
    code, out, err = run("bench", classifier, "--against", "none", *BRIEFLY)
    assert (code, err) == (0, "")
    assert "tiny.onnx: 1 round, 1 thread" in out
    assert "onnxruntime" not in out


def test_an_engine_is_measured_once_however_often_it_is_named(run_json, classifier):
    named = "onnxruntime,arenite,onnxruntime"
    found = run_json("bench", classifier, "--against", named, *BRIEFLY)["engines"]
    assert [each["engine"] for each in found] == ["arenite", "onnxruntime"]


@pytest.mark.parametrize("engine", ["toaster", "litert", ""])
def test_an_unknown_engine_lists_the_known(misused, classifier, engine):
    said = misused("bench", classifier, "--against", engine)
    assert f"{engine!r} does not run ONNX" in said
    assert "onnxruntime, onnxruntime-planned" in said


def test_an_engine_that_is_not_installed_is_named(refused, classifier, without):
    without("onnxruntime")
    said = refused("bench", classifier, "--against", "onnxruntime")
    assert "arenite[onnx]" in said


def test_all_engines_are_those_that_are_installed(run_json, classifier, without):
    without("onnxruntime", "openvino", "MNN", "ncnn")
    found = run_json("bench", classifier, "--against", "all", *BRIEFLY)["engines"]
    assert [each["engine"] for each in found] == ["arenite"]


@pytest.mark.parametrize(
    "option",
    [("--rounds", "0"), ("--seconds", "0"), ("--seconds", "nan"), ("--threads", "0"),
     ("--seed", "-1")],
)  # fmt: skip
def test_wrong_numbers_are_wrong_usage(misused, classifier, option):
    assert option[0] in misused("bench", classifier, *option)


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("absent.onnx", None, 1, "cannot be read"),
        ("broken.onnx", b"garbage", 1, "broken.onnx"),
        ("model.arena", b"", 2, "give the model instead"),
        ("records.csv", b"id,lower,upper,size\na,0,1,3\n", 2, "a CSV cannot be run"),
        ("model.bin", b"", 1, "known: .onnx"),
    ],
)
def test_what_is_no_model_is_refused(run, tmp_path, name, content, code, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    found, out, err = run("bench", path)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_a_model_that_nothing_runs_is_refused(refused, tmp_path):
    assert "uint64" in refused("bench", save(tmp_path, parse(LACKING)))


@pytest.fixture
def contest(run, two_inputs, two_feeds, tmp_path):
    """Ours, on a right file, beside another engine on a file that it refuses."""
    program = tmp_path / "model.arena"
    assert run("build", two_inputs, "-o", program)[0] == 0
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"garbage")
    files = {"arenite": program, "onnxruntime": broken}
    return Contest("onnx", files, two_feeds[0], threads=1, seconds=0.01, may_drop=True)


def test_an_engine_that_fails_is_left_out_with_a_note(contest, capsys):
    (own,) = measure(contest, 2, lambda *_: None, TERMINAL)
    assert (own.engine, len(own.samples)) == ("arenite", 2)
    err = capsys.readouterr().err
    assert err.startswith("note: engine 'onnxruntime' does not run the model: ")
    assert err.count("\n") == 1


def test_an_engine_that_was_named_may_not_fail(contest):
    with pytest.raises(EngineError, match="'onnxruntime' does not run the model"):
        measure(replace(contest, may_drop=False), 1, lambda *_: None)


def sample(*latencies):
    return Sample(1.0, 1.0, list(latencies), 0, 1, None)


@pytest.mark.parametrize(("busy", "kept"), [([0], 0), ([90, 10], 10), ([90, 70, 80, 0], 70)])
def test_a_sample_that_others_disturb_is_measured_again(contest, monkeypatch, busy, kept):
    samples = iter([replace(sample(10**9), num_preempted=each) for each in busy])
    monkeypatch.setattr(rounds, "_run", lambda *_, **__: next(samples))
    alone = replace(contest, files={"arenite": contest.files["arenite"]})
    (own,) = measure(alone, 1, lambda *_: None)
    assert [each.num_preempted for each in own.samples] == [kept]


def test_a_ratio_is_the_median_over_rounds_of_latency_to_ours():
    own = Measured("arenite", [sample(10, 20, 90), sample(10), sample(10)])
    other = Measured("other", [sample(40), sample(30), sample(90)])
    assert other.ratio(own) == 3
    assert other.as_json(own)["latency_ms"] == {"median": 40e-6, "min": 30e-6, "max": 90e-6}
    assert other.as_json(None)["ratio"] is None


def test_rounds_turn_and_ctrl_c_keeps_those_that_are_complete(monkeypatch, tmp_path):
    order = []

    def run(_contest, engine, *, first):
        order.append(engine)
        if len(order) == 6:
            raise KeyboardInterrupt
        assert first == (len(order) <= 2)
        return sample(1)

    monkeypatch.setattr(rounds, "_run", run)
    files = dict.fromkeys(("a", "b"), tmp_path)
    measured = measure(Contest("onnx", files, tmp_path, 1, 1.0), 9, lambda *_: None)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [len(each.samples) for each in measured] == [2, 2]


def test_ctrl_c_before_the_first_round_is_complete_stops(run, classifier, monkeypatch):
    def run_none(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "_run", run_none)
    assert run("bench", classifier, *BRIEFLY) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ([[1.0, 2.0]], [[1.0, 2.5]], 0.5),
        ([[np.nan, np.inf]], [[np.nan, np.inf]], 0),
        ([[np.nan]], [[1.0]], None),
        ([[True, False]], [[True, True]], 1),
        ([[1.0]], [[1.0, 1.0]], None),
        ([[1.0]], [[1.0], [1.0]], None),
        ([], [], 0),
    ],
)
def test_outputs_are_compared_as_far_as_they_can_be(tmp_path, own, other, expected):
    contest = Contest("onnx", {}, tmp_path / "inputs.npz", 1, 1.0)
    for engine, outputs in (("arenite", own), ("other", other)):
        np.savez(rounds.outputs_of(contest, engine), *map(np.array, outputs))
    assert command._distance(contest, "other") == expected


def test_outputs_are_those_of_the_first_run_since_later_ones_have_other_states(
    tmp_path, monkeypatch, capsys
):
    count = np.zeros(1)

    def run(arrays):
        count[:] += 1
        return [count]

    engine = Engine(run, lambda: None)
    monkeypatch.setitem(ENGINES["onnx"], "onnxruntime", lambda path, threads: engine)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    inputs, outputs = (str(tmp_path / name) for name in ("inputs.npz", "outputs.npz"))
    np.savez(inputs)
    worker.main(["onnx", "onnxruntime", "a.onnx", inputs, outputs, "1", "0", "0"])
    assert len(json.loads(capsys.readouterr().out)["latencies_ns"]) == 5
    with np.load(outputs) as stored:
        assert (stored["arr_0"].tolist(), count.tolist()) == ([1], [8])


def test_tflite_is_measured_beside_litert(run_json):
    pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")
    model = shared("models/tflite/hello_world_int8.tflite")
    found = run_json("bench", model, *BRIEFLY)["engines"]
    assert [each["engine"] for each in found] == ["arenite", "litert-xnnpack"]
    assert json.dumps(found)
    assert found[1]["max_difference"] <= 1
