"""`arenite fit`: what it says, writes and refuses."""

import json
import os
import re
import signal

import numpy as np
import pytest

from arenite.runtime import Session
from arenite.strategies import BandsSearch
from arenite.strategies.bands.chains import ChainsSearch
from arenite.strategies.bands.regions import Regions
from support.command_models import BANDED, EXPANDING
from support.edited_programs import program_of
from support.running import PoisonedSession, random_feeds
from support.tiny_onnx import parse, save, with_random_weights

HEAVY = """(float[1,16,16,16] x) => (y)
<float[16,16,3,3] t, float[16,16,3,3] u, float[16,16,3,3] v, float[16,16,3,3] w,
 float[64,1024] f, float[64,64] g, float[64,64] h>
{ a = Conv<pads=[1,1,1,1]>(x, t) b = Conv<pads=[1,1,1,1]>(a, u) c = Conv<pads=[1,1,1,1]>(b, v)
  d = Conv<strides=[2,2], pads=[1,1,1,1]>(c, w) e = Flatten(d)
  i = Gemm<transB=1>(e, f) j = Gemm<transB=1>(i, g) y = Gemm<transB=1>(j, h) }"""
STREAMED = """(float[1,3,48,48] x) => (y)
<float[16,3,3,3] s, float[16,16,3,3] t, float[32,16,3,3] u, float[128,32,1,1] v,
 float[64,128,1,1] w>
{ a = Conv<pads=[1,1,1,1]>(x, s) b = Conv<strides=[2,2], pads=[1,1,1,1]>(a, t)
  c = Conv<strides=[2,2], pads=[1,1,1,1]>(b, u) d = Conv<strides=[3,3]>(c, v) y = Conv(d, w) }"""
INPUT_BYTES = 3 * 32 * 32 * 4


@pytest.fixture
def network(tmp_path):
    return save(tmp_path, with_random_weights(parse(BANDED)))


@pytest.fixture
def whole(run_json, network):
    return run_json("plan", network)["height"]


def test_inputs_and_outputs_of_the_caller_lie_in_a_memory_of_their_own(
    run, run_json, misused, network, tmp_path
):
    frontiers = [
        [each["height"] for each in run_json("fit", network, *boundary)["frontier"]]
        for boundary in ((), ("--boundary", "exclude"))
    ]
    least = min(frontiers[1])
    assert least < INPUT_BYTES < min(frontiers[0])
    output, entire = tmp_path / "callers.arena", tmp_path / "whole.arena"
    chosen = ("fit", network, "--boundary", "exclude")
    found = run_json(*chosen, "--budget", least, "-o", output)
    assert found["height"] == least
    assert found["callers_bytes"] >= INPUT_BYTES
    run_json("build", network, "--kernels", "direct", "-o", entire)
    with Session(entire) as session:
        feeds = random_feeds(session)
        expected = {name: array.tobytes() for name, array in session.run(feeds).items()}
    theirs = np.zeros(found["callers_bytes"] + 256, np.uint8)
    theirs = theirs[-theirs.ctypes.data % 128 :]
    for buffers in ({}, {"caller": theirs}):
        with Session(output, buffers=buffers, poison=0xA5) as session:
            assert {each.name: each.size for each in session.memories} == {
                "arena": least, "caller": found["callers_bytes"],
            }  # fmt: skip
            assert {n: a.tobytes() for n, a in session.run(feeds).items()} == expected
    assert theirs.any()
    _, out, _ = run(*chosen, "--budget", least)
    assert "of inputs and outputs, in a memory of their own" in out
    assert "not a plan file" in misused(*chosen, "--budget", least, "-o", tmp_path / "plan.json")
    with_policy = (*chosen, "--budget", least, "--policy", "joint")
    assert "goes without --memory and --policy" in misused(*with_policy)


def test_without_a_budget_it_says_what_each_size_costs(run_json, network, whole):
    found = run_json("fit", network)
    assert found.keys() >= {"model", "frontier", "costs", "output"}
    assert "assumed" in found["costs"]
    heights = [each["height"] for each in found["frontier"]]
    assert heights[0] == whole
    assert heights == sorted(heights, reverse=True)
    assert len(heights) > 2
    for each in found["frontier"]:
        assert each.keys() >= {
            "height", "macs_ratio", "bytes_moved", "steps", "predicted_slowdown",
        }  # fmt: skip
        assert each["macs_ratio"] == 1
        assert "latency_ms" not in each


def test_a_model_of_empty_tensors_takes_nothing(run, tmp_path):
    path = save(tmp_path, parse("(float[past,4] x) => (y) { y = Relu(x) }"))
    code, out, _ = run("fit", path, "--dim", "past=0")
    assert code == 0
    assert "0 B   100.0 %" in out


def test_measured_latencies_stand_beside_what_is_predicted(run_json, run, network):
    assert all(
        each["latency_ms"] > 0 for each in run_json("fit", network, "--measure")["frontier"]
    )
    code, out, _ = run("fit", network, "--measure")
    assert code == 0
    assert "measured" in out


def test_a_budget_in_bytes_is_met_and_the_file_gives_the_same_bits(
    run, run_json, network, whole, tmp_path
):
    budget = whole * 2 // 3
    output, entire = tmp_path / "small.arena", tmp_path / "whole.arena"
    found = run_json("fit", network, "--budget", budget, "-o", output)
    assert found.keys() >= {
        "model", "budget", "height", "resident_bytes", "macs_ratio", "bytes_moved", "steps",
        "predicted_slowdown", "output",
    }  # fmt: skip
    assert found["height"] <= budget == found["budget"]
    assert found["whole_height"] == whole
    assert found["regions"]
    assert found["output"] == str(output)
    run_json("build", network, "-o", entire)
    fed = tmp_path / "x.npy"
    np.save(fed, np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32))
    made = []
    for program in (output, entire):
        path = program.with_suffix(".npz")
        code, _, err = run("run", program, "--input", f"x={fed}", "-o", path)
        assert (code, err) == (0, "")
        made.append(np.load(path)["y"])
    assert made[0].tobytes() == made[1].tobytes()


def test_what_runs_in_bands_is_told_line_by_line(run, network):
    code, out, _ = run("fit", network, "--budget", "55%")
    assert code == 0
    lines = [line for line in out.splitlines() if "at a time" in line or "row by row" in line]
    assert lines
    assert all(line.count(" to ") == 1 for line in lines)
    assert "\\n" not in out


def test_a_percentage_is_of_what_the_model_takes_whole(run_json, network, whole):
    found = run_json("fit", network, "--budget", "70%")
    assert found["budget"] == int(0.7 * whole)
    assert found["height"] <= found["budget"]
    assert run_json("fit", network, "--budget", "100%")["regions"] == []


def test_a_slowdown_alone_gives_the_smallest_that_is_quick_enough(run_json, network):
    frontier = run_json("fit", network)["frontier"]
    found = run_json("fit", network, "--slowdown", "15%")
    allowed = [each["height"] for each in frontier if each["predicted_slowdown"] <= 0.15]
    assert found["height"] == min(allowed)
    assert found["budget"] is None


def test_a_budget_that_takes_too_long_is_refused(refused, run_json, network):
    frontier = run_json("fit", network)["frontier"]
    said = refused("fit", network, "--budget", frontier[-1]["height"], "--slowdown", "0.01%")
    assert "raise --slowdown or --budget" in said


def test_beyond_the_least_it_says_what_binds(refused, run_json, network):
    least = run_json("fit", network)["frontier"][-1]["height"]
    said = refused("fit", network, "--budget", 1000)
    assert "the budget is 1,000 B" in said
    assert f"the least arena that bands reach is {least:,} B" in said
    alone = re.search(r"the graph input 'x' alone takes ([\d,]+) B", said)
    assert alone is not None
    assert 0 < int(alone[1].replace(",", "")) <= INPUT_BYTES
    assert "rows" not in said


def test_a_budget_of_weights_goes_with_a_budget_of_the_arena(run_json, tmp_path):
    heavy = save(tmp_path, with_random_weights(parse(HEAVY)))
    plain = run_json("fit", heavy, "--budget", "96KiB")
    found = run_json("fit", heavy, "--budget", "96KiB", "--weights", "60%")
    assert found["height"] <= found["budget"]
    assert found["held"] != plain["held"]


def test_weights_are_loaded_while_bands_of_other_steps_run(run_json, tmp_path):
    model = save(tmp_path, with_random_weights(parse(STREAMED)))
    # Filters of one panel have the shape of an image, and no rows that could be read apart.
    assert len(run_json("fit", model, "--weights", "60%")["frontier"]) > 4
    whole, banded, beside, in_turn = (tmp_path / f"{name}.arena" for name in "wbst")
    run_json("build", model, "-o", whole, "--kernels", "direct")
    run_json("fit", model, "--budget", "64KiB", "-o", banded)
    found = run_json("fit", model, "--budget", "80KiB", "--weights", "60%,beside", "-o", beside)
    run_json("fit", model, "--budget", "80KiB", "--weights", "60%,in-turn", "-o", in_turn)
    assert found["height"] <= found["budget"]
    with Session(whole) as session:
        feeds = random_feeds(session)
        (expected,) = session.run(feeds).values()
    for program in (banded, beside, in_turn):
        with PoisonedSession(program) as poisoned:
            (outputs,) = poisoned.run(feeds).values()
        assert outputs.tobytes() == expected.tobytes()
    plan, again = tmp_path / "beside.json", tmp_path / "again.arena"
    run_json("fit", model, "--budget", "80KiB", "--weights", "60%,beside", "-o", plan)
    run_json("build", model, "--plan", plan, "-o", again)
    assert program_of(again) == program_of(beside)
    root = program_of(beside)
    turns = [root["steps"][turn["step"]] for turn in root["turns"]]
    loads = [i for i, step in enumerate(turns) if step["kernel_type"] == "LoadWeights"]
    rows = [i for i, turn in enumerate(root["turns"]) if turn["count"]]
    assert loads[0] < rows[-1]
    assert all(turns[i]["lane"] == 1 for i in loads)
    assert not any(step.get("lane") for step in program_of(in_turn)["steps"])


def test_an_output_of_the_wrong_kind_is_refused_before_anything_is_read(misused, tmp_path):
    absent = tmp_path / "absent.onnx"
    said = misused("fit", absent, "-o", tmp_path / "small.arena")
    assert "a frontier is written as a page or a picture; name it *.html or *.svg" in said
    said = misused("fit", absent, "--budget", "1MiB", "-o", tmp_path / "page.html")
    assert "with a budget, a program or a plan is written; name it *.arena or *.json" in said
    said = misused("fit", absent, "--budget", "1MiB", "--measure")
    assert "--measure is for the frontier" in said


def test_ctrl_c_keeps_what_was_found(run, run_json, network, monkeypatch):
    full = run_json("fit", network)["frontier"]
    planned, calls = BandsSearch._planned, []

    def interrupted(self, path):
        calls.append(path)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return planned(self, path)

    monkeypatch.setattr(BandsSearch, "_planned", interrupted)
    code, out, err = run("fit", network, "--json")
    assert (code, err.count("the best program so far is kept")) == (0, 1)
    found = json.loads(out)["frontier"]
    assert 1 < len(found) < len(full)
    assert found[0] == full[0]


def test_a_model_without_rows_has_nothing_to_gain(run, run_json, tmp_path):
    dense = save(
        tmp_path,
        with_random_weights(
            parse("(float[1,8] x) => (y) <float[8,8] w> { a = Gemm(x, w) y = Relu(a) }")
        ),
    )
    assert len(run_json("fit", dense)["frontier"]) == 1
    code, out, _ = run("fit", dense)
    assert code == 0
    assert "Nothing in it can run in bands for less." in out


def test_a_list_of_records_is_refused(refused, tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\na,0,2,32\n")
    assert "records.csv" in refused("fit", path)


def test_stated_costs_are_used_and_named(run_json, refused, network, tmp_path):
    path = tmp_path / "board.json"
    run_json("calibrate", "-o", path)
    assert run_json("fit", network, "--costs", path)["costs"].endswith(", stated")
    path.write_text("{}")
    assert "not a table of costs" in refused("fit", network, "--costs", path)


def test_regions_in_strips_of_columns_are_named(run, run_json, tmp_path, monkeypatch):
    monkeypatch.setattr(ChainsSearch, "is_of_use", False)
    path = save(tmp_path, with_random_weights(parse(EXPANDING)))
    least = run_json("fit", path)["frontier"][-1]
    found = run_json("fit", path, "--budget", str(least["height"]))
    (columns,) = {region["columns"] for region in found["regions"]} - {None}
    code, out, _ = run("fit", path, "--budget", str(least["height"]))
    assert code == 0
    assert re.search(rf"row by row, in strips of {columns} columns?: ", " ".join(out.split()))


def test_what_runs_in_strips_is_named_with_its_price(run, run_json, tmp_path, monkeypatch):
    monkeypatch.setattr(Regions, "widths", lambda *_: ())
    path = save(tmp_path, with_random_weights(parse(EXPANDING)))
    least = run_json("fit", path)["frontier"][-1]
    assert 1 < least["macs_ratio"] <= 1.75
    found = run_json("fit", path, "--budget", str(least["height"]))
    (strips,) = found["strips"]
    assert strips["steps"] == 3
    assert strips["strips"] > 1
    assert sum(region["steps"] for region in found["regions"]) >= 3
    code, out, _ = run("fit", path, "--budget", str(least["height"]))
    assert code == 0
    assert re.search(rf"in strips +3 steps, {strips['strips']} strips: \S+ to \S+", out)
    assert f"{least['macs_ratio']:.3f} times the multiply-adds" in " ".join(out.split())
    assert run_json("fit", path, "--budget", "100%")["strips"] == []
