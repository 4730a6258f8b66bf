"""`arenite inspect`: what our runtime runs, and with whose kernels."""

import numpy as np

from support.command_models import LACKING, LEFT_TO_ONNXRUNTIME
from support.tiny_onnx import parse, save

ARENITE = ("--target", "arenite")
CARRIED = """(float[1,64] x) => (y) { a = Concat<axis=1>(x, x, x, x) b = Concat<axis=1>(x, x, x, x)
  c = ReduceMax<axes=[1]>(a) d = ReduceMax<axes=[1]>(b) y = Add(c, d) }"""
"""Runs in less memory if each branch ends before the next begins."""


def test_steps_are_counted_by_backend_as_a_run_counts_them(run_json, classifier, image):
    found = run_json("inspect", classifier, *ARENITE)
    assert found["target"] == "arenite"
    assert found["backends"] == run_json("run", classifier, "--input", image)["backends"]
    assert sum(found["backends"].values()) == found["num_operators"]


def test_each_step_names_its_backend(run_json, classifier, image):
    steps = run_json("inspect", classifier, *ARENITE)["steps"]
    profile = run_json("run", classifier, "--input", image, "--profile")["steps"]
    assert [(step["operator"], step["backend"]) for step in steps] == [
        (step["step"], step["backend"]) for step in profile
    ]


def test_the_peak_is_that_of_the_plan(run_json, classifier):
    found = run_json("inspect", classifier, *ARENITE)
    assert found["lower_bound"] == run_json("plan", classifier, *ARENITE)["lower_bound"]


def test_what_is_left_to_onnxruntime_is_shown_with_the_reason(run, run_json, tmp_path):
    model = save(tmp_path, parse(LEFT_TO_ONNXRUNTIME))
    found = run_json("inspect", model, *ARENITE)
    assert found["backends"]["onnxruntime"] == 1
    (note,) = found["notes"]
    assert "Det (no kernel for this operator)" in note
    code, out, err = run("inspect", model, *ARENITE)
    assert (code, err) == (0, "")
    (row,) = (line for line in out.splitlines() if line.startswith("onnxruntime"))
    assert row.split() == ["onnxruntime", "1", "1", "Det"]
    assert f"note: {note}" in out


def test_an_order_that_needs_less_is_offered_and_sharing_is_not(run_json, run, tmp_path):
    model = save(tmp_path, parse(CARRIED))
    given = (*ARENITE, "--order", "given")
    found = run_json("inspect", model, *given)
    (remedy,) = found["remedies"]
    assert remedy["options"] == "--order best"
    assert remedy["lower_bound"] < found["lower_bound"]
    assert found["sharing"] is None
    reordered = run_json("inspect", model, *ARENITE)
    assert (reordered["lower_bound"], reordered["remedies"]) == (remedy["lower_bound"], [])
    assert "could share storage" not in run("inspect", model, *given)[1]


def test_backends_follow_the_order_that_is_asked_for(run_json, tmp_path):
    model = save(tmp_path, parse(CARRIED))
    plain, ordered = (
        run_json("inspect", model, *ARENITE, "--order", order) for order in ("given", "best")
    )
    assert plain["backends"] == ordered["backends"]
    assert len({step["operator"] for step in ordered["steps"]}) == plain["num_operators"]


def test_the_graph_as_written_names_no_backend(run, run_json, classifier):
    found = run_json("inspect", classifier, "--target", "generic")
    assert (found["target"], found["backends"]) == ("generic", {})
    assert {step["backend"] for step in found["steps"]} == {None}
    assert "kernels of" not in run("inspect", classifier, "--target", "generic")[1]


def test_free_dimensions_are_bound(run_json, refused, tmp_path):
    model = save(tmp_path, parse("(float[n,4] x) => (y) { y = Neg(x) }"))
    assert "'n'" in refused("inspect", model, *ARENITE)
    bounds = [run_json("inspect", model, *ARENITE, "--dim", f"n={n}") for n in (8, 16)]
    assert np.diff([found["lower_bound"] for found in bounds]) > 0


def test_what_our_runtime_decides_cannot_be_asked_for(misused, classifier):
    said = misused("inspect", classifier, *ARENITE, "--alias", "all")
    assert "--target arenite decides boundary, alignment and sharing itself" in said


def test_a_model_that_nothing_runs_is_refused(refused, tmp_path):
    assert "uint64" in refused("inspect", save(tmp_path, parse(LACKING)), *ARENITE)
