"""`arenite stream`, and streams in Python and C."""

import json

import numpy as np
import pytest

import arenite
from arenite.pipeline.making import axis_of, hop_of
from support.tiny_onnx import parse, save, with_random_weights

TEXT = """(float[1,6,24] frames) => (y) <float[8,6,3] w, float[4,8,5] v>
  { a = Conv(frames, w) b = Relu(a) c = Conv(b, v) y = GlobalAveragePool(c) }"""
LARGE = """(float[1,24,8] frames) => (y) <float[8,64] m, float[64,64,3] w, float[64,64,5] v>
  { p = MatMul(frames, m) t = Transpose<perm=[0,2,1]>(p) a = Conv(t, w) c = Conv(a, v)
    y = GlobalAveragePool(c) }"""
PADDED = """(float[1,6,24] frames) => (y) <float[8,6,3] w>
  { a = Conv<pads=[1,1]>(frames, w) y = Relu(a) }"""


@pytest.fixture
def listener(tmp_path):
    """A model over time."""
    return save(tmp_path, with_random_weights(parse(TEXT)))


@pytest.fixture
def stream(listener, tmp_path):
    """The words of a command that makes a program of it, less the hop."""
    return ("stream", listener, "--axis", "frames:2", "-o", tmp_path / "hops.arena", "--json")


def test_a_program_takes_a_hop_and_states_what_it_costs(run, stream, listener, tmp_path):
    code, out, _ = run(*stream, "--hop", "3", "--kernels", "direct")
    found = json.loads(out)
    assert code == 0
    assert (found["window"], found["hop"], found["exact"], found["warm_up"]) == (24, 3, True, 8)
    assert found["whole"] == [
        {"step": "GlobalAveragePool_3", "reason": "depends on all rows of the window"}
    ]
    assert found["multiply_adds"] * 6 < found["window_multiply_adds"]
    assert found["state_bytes"] <= found["height"]
    x = np.random.default_rng(0).standard_normal((1, 6, 30)).astype(np.float32)
    arenite.build(listener, tmp_path / "window.arena", whole=True)
    with (
        arenite.Session(tmp_path / "hops.arena") as hops,
        arenite.Session(tmp_path / "window.arena") as window,
    ):
        for end in range(3, 31, 3):
            made = hops.run({"frames": x[..., end - 3 : end]})["y"]
        np.testing.assert_array_equal(made, window.run({"frames": x[..., 6:]})["y"])


def test_a_hop_is_computed_in_parts_where_memory_is_short(run, refused, tmp_path):
    model = save(tmp_path, with_random_weights(parse(LARGE)))
    words = ["stream", model, "--axis", "frames:1", "--hop", 6, "-o", tmp_path / "hops.arena"]
    whole = json.loads(run(*words, "--json")[1])
    x = np.random.default_rng(0).standard_normal((1, 24, 8)).astype(np.float32)
    with arenite.Session(tmp_path / "hops.arena") as hops:
        expected = [hops.run({"frames": each})["y"] for each in np.split(x, 4, axis=1)][-1]
    found = json.loads(run(*words, "--json", "--capacity", whole["height"] - 1)[1])
    assert (whole["parts"], found["hop"]) == (1, 6)
    assert found["parts"] > 1
    assert found["height"] < whole["height"]
    assert found["multiply_adds"] == whole["multiply_adds"]
    with arenite.Session(tmp_path / "hops.arena") as hops:
        made = [hops.run({"frames": each})["y"] for each in np.split(x, 4, axis=1)][-1]
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
    out = run(*words, "--capacity", found["height"])[1]
    assert f"6 rows of a window of 24, in {found['parts']} parts" in out
    assert "no plan fits 1,024 B" in refused(*words, "--capacity", 1024)


def test_c_source_computes_a_hop_in_parts_within_a_budget(run, tmp_path):
    model = save(tmp_path, with_random_weights(parse(LARGE)))
    words = ["export", model, "--to", "c", "--axis", "frames:1", "--hop", 6, "--json", "--no-test"]
    whole = json.loads(run(*words, "-o", tmp_path / "whole")[1])
    budget = whole["height"] - 1
    code, out, _ = run(*words, "-o", tmp_path / "parts", "--budget", budget)
    assert code == 0
    assert json.loads(out)["height"] <= budget
    (source,) = (tmp_path / "parts").glob("tiny.c")
    assert source.read_text(encoding="utf-8").count("memmove(") > 2


def test_the_table_names_what_computes_the_whole_window(run, listener, tmp_path):
    code, out, _ = run(
        "stream", listener, "--axis", "frames:2", "--hop", "4", "-o", tmp_path / "hops.arena"
    )
    assert code == 0
    assert "GlobalAveragePool_3 depends on all rows of the window" in out
    assert "those of the model for the window that ends at the hop, after 6 runs" in out


def test_python_builds_the_same_program(listener, stream, run, tmp_path):
    assert run(*stream, "--hop", "60ms", "--rate", "50")[0] == 0
    made = arenite.stream(listener, tmp_path / "own.arena", axis="frames:2", hop="60ms", rate=50)
    assert made.streamed.hops.rows == 3
    assert (tmp_path / "own.arena").read_bytes() == (tmp_path / "hops.arena").read_bytes()


def test_padding_of_the_stream_makes_outputs_late(run, tmp_path):
    padded = save(tmp_path, with_random_weights(parse(PADDED)))
    words = ("stream", padded, "--axis", "frames:2", "--hop", "4", "-o", tmp_path / "a.arena")
    code, out, _ = run(*words, "--padding", "stream", "--json")
    found = json.loads(out)
    assert (code, found["exact"], found["late"]) == (0, False, 1)


def test_what_is_no_stream_is_refused(refused, listener, tmp_path):
    words = ("stream", listener, "-o", tmp_path / "a.arena")
    assert "is not an input of the model; inputs: 'frames'" in refused(
        *words, "--axis", "x:2", "--hop", "4"
    )
    assert "a hop of 24 is not between 1 and 23" in refused(
        *words, "--axis", "frames:2", "--hop", "24"
    )
    text = "(float[1,6,24] frames) => (y) {y = ReduceMean<axes=[2]>(frames)}"
    mean = save(tmp_path, parse(text))
    assert "depends on all rows of the window" in refused(
        "stream", mean, "--axis", "frames:2", "--hop", "4", "-o", tmp_path / "a.arena"
    )
    assert not (tmp_path / "a.arena").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--axis", "frames", "--hop", "4"), "write INPUT:AXIS"),
        (("--axis", "frames:-1", "--hop", "4"), "write INPUT:AXIS"),
        (("--axis", "frames:2", "--hop", "few"), "write rows such as 4, or 20ms"),
        (("--axis", "frames:2", "--hop", "20ms"), "needs the rate of the rows"),
        (("--axis", "frames:2", "--hop", "20ms", "--rate", "0"), "is not a number of rows"),
        (("--axis", "frames:2", "--hop", "nanms", "--rate", "50"), "no whole number"),
        (("--axis", "frames:2", "--hop", "25ms", "--rate", "50"), "no whole number"),
    ],
)
def test_a_stream_that_is_stated_wrongly_is_a_mistake_of_usage(
    run, listener, tmp_path, words, reason
):
    code, _, err = run("stream", listener, "-o", tmp_path / "a.arena", *words)
    assert code == 2
    assert reason in " ".join(err.split())


def test_c_source_keeps_the_rows_from_run_to_run(run, listener, tmp_path):
    words = ("export", listener, "--to", "c", "-o", tmp_path / "c", "--json")
    code, out, _ = run(*words, "--axis", "frames:2", "--hop", "3")
    assert (code, json.loads(out)["tested"]) == (0, True)
    assert "_HAS_STATES 1" in (tmp_path / "c" / "tiny.h").read_text()
    code, _, err = run(*words, "--axis", "frames:2")
    assert (code, "--axis and --hop state a stream together" in err) == (2, True)


def test_a_program_of_a_stream_fits_a_budget(run, run_json, misused, tmp_path):
    text = """(float[1,6,200,4] frames) => (y)
      <float[8,6,3,1] w, float[64,8,1,1] u, float[4,64,1,1] v>
      { a = Conv(frames, w) b = Conv(a, u) c = Relu(b) y = Conv(c, v) }"""
    listener = save(tmp_path, with_random_weights(parse(text)))
    stream = ("--axis", "frames:2", "--hop", "50")
    arena = tmp_path / "hops.arena"
    run_json("stream", listener, *stream, "--kernels", "direct", "-o", arena)
    fitted = tmp_path / "fitted.arena"
    found = run_json("fit", listener, *stream, "--budget", "50%", "-o", fitted)
    x = np.random.default_rng(0).standard_normal((1, 6, 100, 4)).astype(np.float32)
    with arenite.Session(arena) as hops, arenite.Session(fitted) as bands:
        assert found["height"] < hops.memory().memories
        for start in (0, 50):
            given = {"frames": x[:, :, start : start + 50]}
            np.testing.assert_array_equal(bands.run(given)["y"], hops.run(given)["y"])
    said = misused("fit", listener, *stream, "--budget", "97%", "-o", tmp_path / "plan.json")
    assert "a plan states no stream" in " ".join(said.split())


def test_texts_of_a_stream():
    assert axis_of("a:0:1") == ("a:0", 1)
    assert hop_of("20ms", 100.0) == 2
    assert hop_of("7", None) == 7
