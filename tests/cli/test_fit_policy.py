"""`arenite fit --policy`: programs that recompute and spill, and `arenite run` of them."""

import math

import numpy as np
import pytest

import arenite
from arenite.pipeline.session import Session
from support.command_models import SMALL_UNET
from support.edited_programs import program_of
from support.tiny_onnx import parse, save, with_random_weights
from support.trading import CARRIED, masked_step_file, some_feeds, step_file


@pytest.fixture
def step(tmp_path):
    return step_file(tmp_path)


def test_the_program_of_a_policy_is_written_and_trains_as_without(run_json, step, tmp_path):
    whole, small = tmp_path / "whole.arena", tmp_path / "small.arena"
    run_json("build", step, "-o", whole)
    found = run_json(
        "fit", step, "--budget", "80%", "--policy", "offload-prefetch", "--link", "1GB/s",
        "-o", small,
    )  # fmt: skip
    assert found["policy"] == "offload-prefetch"
    assert found["height"] <= found["budget"] < found["whole_height"]
    assert found["bytes_moved"] == found["bytes_out"] + found["bytes_back"] > 0
    assert found["spilled_bytes"] > 0
    assert found["link"] == {
        "out_bytes_per_s": 1e9, "back_bytes_per_s": 1e9, "origin": "stated",
    }  # fmt: skip
    assert found["predicted_s"] >= found["predicted_whole_s"] > 0
    with Session(small) as session:
        assert session.arena_bytes == found["height"]
        feeds = some_feeds(session.inputs)
        np.savez(tmp_path / "batch.npz", **feeds)
    losses = []
    for program in (whole, small, step):
        state = tmp_path / f"{program.stem}.{program.suffix}.npz"
        trained = run_json(
            "run", program, "--input", tmp_path / "batch.npz", "--steps", 3, "--state", state
        )
        assert trained["engine"] == "arenite"
        losses.append(trained["losses"])
        states = np.load(state)
        if program == whole:
            expected = {name: states[name] for name in states.files}
        assert {name: states[name].tobytes() for name in states.files} == {
            name: array.tobytes() for name, array in expected.items()
        }
    assert losses[0] == losses[1] == losses[2]


def test_it_says_what_runs_again_what_moved_and_what_that_costs(run, step):
    code, out, _ = run("fit", step, "--budget", "80%", "--policy", "greedy-chains")
    assert code == 0
    assert "policy     greedy-chains" in out
    assert "again" in out
    assert "spilled    nothing" in out
    code, out, _ = run("fit", step, "--budget", "80%", "--policy", "offload-prefetch")
    assert code == 0
    assert "in a temporary file" in out
    assert "more time, predicted" in out
    assert "link       1,000 MB/s out, 1,000 MB/s back, assumed" in out


def test_a_policy_that_rounds_says_so(run, run_json, step):
    chosen = ("fit", step, "--budget", "90%", "--policy", "gist-fp16")
    assert run_json(*chosen)["rounded"] > 0
    _, out, _ = run(*chosen)
    assert "fp16 meanwhile: outputs are not the same to the bit" in out
    exact = run_json("fit", step, "--budget", "80%", "--policy", "greedy-chains")
    assert exact["rounded"] == 0


def test_a_model_that_infers_is_fitted_by_a_policy_where_bands_do_not_get_there(
    run_json, tmp_path
):
    model = save(tmp_path, with_random_weights(parse(CARRIED)))
    output = tmp_path / "small.arena"
    whole = run_json("plan", model)["height"]
    found = run_json("fit", model, "--budget", "85%", "-o", output)
    assert found["policy"] == "joint"
    assert found["height"] <= 0.85 * whole
    with Session(output) as session, Session(model) as entire:
        feeds = some_feeds(session.inputs)
        assert session.run(feeds)["y"].tobytes() == entire.run(feeds)["y"].tobytes()


AGAIN = """(float[1,64,n] x) => (float[1,256,n] y)
{ a = Concat<axis=1>(x, x, x, x) b = Exp(a) c = ReduceSum<keepdims=1>(b)
  d = Concat<axis=1>(x, x, x, x) e = Tanh(d) f = ReduceMax<keepdims=1>(e) g = Mul(c, f)
  h = Mul(a, g) y = Mul(h, c) }"""


@pytest.mark.parametrize(
    ("policy", "text", "shape", "figure"),
    [
        ("joint", CARRIED.replace("16,16] x", "n,n] x"), (2, 8, "n", "n"), "spilled_bytes"),
        ("greedy-chains", AGAIN, (1, 64, "n"), "steps_again"),
    ],
)
def test_a_policy_holds_for_all_sizes_of_a_range(policy, text, shape, figure, run_json, tmp_path):
    model = save(tmp_path, with_random_weights(parse(text)))
    output = tmp_path / "small.arena"
    ranged = ("--dim", "n=4..16:4")
    whole = run_json("plan", model, *ranged)["height"]
    found = run_json("fit", model, *ranged, "--budget", "85%", "--policy", policy, "-o", output)
    assert found["height"] <= 0.85 * whole
    assert found[figure]
    with Session(output) as session:
        for n in (16, 4, 12):
            x = np.random.default_rng(n).standard_normal([n if a == "n" else a for a in shape])
            with arenite.Session(model, dims={"n": n}) as alone:
                expected = alone.run({"x": x.astype(np.float32)})["y"]
            assert session.run({"x": x.astype(np.float32)})["y"].tobytes() == expected.tobytes()


def test_rows_are_spilled_where_neither_bands_nor_the_policy_get_there(
    run, run_json, refused, tmp_path
):
    model = save(tmp_path, with_random_weights(parse(SMALL_UNET)))
    output, entire = tmp_path / "small.arena", tmp_path / "whole.arena"
    assert "with carried tensors spilled or recomputed" in refused("fit", model, "--budget", 4096)
    assert "reaches" in refused("fit", model, "--budget", "15KiB", "--policy", "joint")
    found = run_json("fit", model, "--budget", "15KiB", "-o", output)
    assert found["height"] <= 15 * 1024
    assert found["regions"]
    assert found["policy"] == "offload-prefetch"
    assert found["spilled_bytes"] > 0
    assert found["macs_ratio"] == 1
    assert found["predicted_slowdown"] > 0
    assert found["predicted_s"] > found["predicted_whole_s"]
    assert run("build", model, "--kernels", "direct", "-o", entire)[0] == 0
    with Session(output) as session, Session(entire) as whole:
        assert session.memories[0].size == found["height"]
        feeds = some_feeds(session.inputs)
        assert session.run(feeds)["y"].tobytes() == whole.run(feeds)["y"].tobytes()
    code, out, _ = run("fit", model, "--budget", "15KiB")
    assert code == 0
    assert "in bands" in out
    assert "in a temporary file" in out


def test_a_policy_without_a_budget_is_a_usage_error(run, step):
    code, _, err = run("fit", step, "--policy", "joint")
    assert code == 2
    assert "--policy requires --budget" in err


@pytest.mark.parametrize(
    ("budget", "policy", "said"), [("80%", "hope", "hope"), ("4KiB", "greedy-chains", "reaches")]
)
def test_an_unknown_policy_and_a_budget_out_of_reach_are_named(run, step, budget, policy, said):
    code, _, err = run("fit", step, "--budget", budget, "--policy", policy)
    assert code == 1
    assert said in err


def test_a_program_file_without_states_trains_nothing(run, tmp_path):
    model = save(tmp_path, with_random_weights(parse(CARRIED)))
    output = tmp_path / "infers.arena"
    assert run("build", model, "-o", output)[0] == 0
    code, _, err = run("run", output, "--steps", 2)
    assert code == 1
    assert "the model has no states to train; `arenite train` makes a step that has" in err


def test_a_policy_is_asked_about_the_order_of_the_model_too(run_json, refused, step):
    chosen = ("fit", step, "--budget", "85%", "--policy", "sqrt")
    # The searched order is lower, but mixes the passes: too few points cut it.
    assert "reaches" in refused(*chosen, "--order", "best")
    found = run_json(*chosen)
    assert found["height"] == run_json(*chosen, "--order", "given")["height"]
    assert found["height"] <= found["budget"] < found["whole_height"]


def test_gist_keeps_masks_as_bits(run_json, tmp_path):
    model, small = masked_step_file(tmp_path), tmp_path / "small.arena"
    found = run_json("fit", model, "--budget", "99%", "--policy", "gist", "-o", small)
    assert found["height"] <= found["budget"] < found["whole_height"]
    assert found["rounded"] == found["steps_again"] == 0
    program = program_of(small)
    packed = {
        math.prod(program["tensors"][step["inputs"][0]]["shape"]):
        math.prod(program["tensors"][step["outputs"][0]]["shape"])
        for step in program["steps"] if step["kernel_type"] == "PackBits"
    }  # fmt: skip
    assert packed[2 * 7 * 17 * 15] == 447
    with Session(small) as session, Session(model) as entire:
        feeds = some_feeds(session.inputs)
        for _ in range(2):
            outputs, expected = session.run(feeds), entire.run(feeds)
            for found, right in ((outputs, expected), (session.states, entire.states)):
                assert {name: array.tobytes() for name, array in found.items()} == {
                    name: array.tobytes() for name, array in right.items()
                }
