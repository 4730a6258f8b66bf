"""What `arenite build` runs in bands by itself: the same bits, in no larger an arena."""

import numpy as np
import pytest

from arenite.runtime import Session
from support.command_models import EXCEEDS_A_CACHE
from support.running import random_feeds
from support.tiny_onnx import parse, save, with_random_weights

THEN_TILES = """(float[1,8,64,64] x) => (z)
    <float[96,8,1,1] a, float[32,96,1,1] b, float[32,32,3,3] c>
    { p = Conv(x, a) q = Relu(p) y = Conv(q, b) z = Conv<pads=[1,1,1,1]>(y, c) }"""

NO_ROOM = """(float[1,32,64,64] x) => (z) <float[64,32,3,3] a, float[64,64,3,3] b>
    { p = Conv<pads=[1,1,1,1]>(x, a) q = Conv<pads=[1,1,1,1]>(p, b)
      z = MaxPool<kernel_shape=[2,2], strides=[2,2]>(q) }"""


@pytest.fixture
def block(tmp_path):
    return save(tmp_path, with_random_weights(parse(EXCEEDS_A_CACHE)))


def made(program):
    with Session(program) as session:
        (output,) = session.run(random_feeds(session)).values()
        return output.tobytes()


def test_an_arena_is_a_fraction_and_the_bits_are_the_same(run_json, block, tmp_path):
    whole, banded = tmp_path / "whole.arena", tmp_path / "banded.arena"
    plain = run_json("build", block, "-o", whole, "--whole")
    found = run_json("build", block, "-o", banded)
    assert plain["arena_bytes"] == plain["height"] == found["height"]
    assert plain["num_turns"] == plain["num_steps"] == found["num_steps"] < found["num_turns"]
    assert found["arena_bytes"] < plain["arena_bytes"] / 3
    assert made(banded) == made(whole)


def test_it_says_what_whole_steps_would_take(run, block, tmp_path):
    code, out, err = run("build", block, "-o", tmp_path / "m.arena")
    assert (code, err) == (0, "")
    assert "whole" in out
    assert "turns" in out
    code, out, _ = run("build", block, "-o", tmp_path / "m.arena", "--whole")
    assert code == 0
    assert "turns" not in out


def test_a_run_of_the_model_takes_the_same_arena(run_json, block, tmp_path):
    image = tmp_path / "x.npy"
    np.save(image, np.ones((1, 4, 96, 64), np.float32))
    built = run_json("build", block, "-o", tmp_path / "m.arena")
    assert run_json("run", block, "--input", image)["arena_bytes"] == built["arena_bytes"]


def test_a_plan_decides_alone(run_json, misused, block, tmp_path):
    plan = tmp_path / "plan.json"
    run_json("plan", block, "-o", plan)
    built = run_json("build", block, "--plan", plan, "-o", tmp_path / "m.arena")
    assert built["arena_bytes"] == built["height"]
    assert built["num_turns"] == built["num_steps"]
    assert "--whole" in misused(
        "build", block, "--plan", plan, "--whole", "-o", tmp_path / "n.arena"
    )


def test_tiles_have_the_room_of_whole_steps(run_json, tmp_path):
    model = save(tmp_path, with_random_weights(parse(THEN_TILES)))
    found = run_json("build", model, "-o", tmp_path / "m.arena")
    assert found["num_turns"] > found["num_steps"]
    assert sum(found["tiles"].values()) == 1
    assert found["arena_bytes"] <= found["height"]


def test_a_capacity_may_be_met_in_bands_alone(run_json, refused, block, tmp_path):
    program = tmp_path / "m.arena"
    found = run_json("build", block, "-o", program, "--capacity", "512KiB")
    assert found["arena_bytes"] <= 512 * 1024 < found["height"]
    said = refused("build", block, "-o", program, "--capacity", "512KiB", "--whole")
    assert "no plan fits 524,288 B" in said
    assert "no plan fits 65,536 B" in refused("build", block, "-o", program, "--capacity", "64KiB")


def test_a_convolution_without_room_for_tiles_runs_in_bands(run_json, tmp_path):
    model = save(tmp_path, with_random_weights(parse(NO_ROOM)))
    program = tmp_path / "m.arena"
    whole = run_json("build", model, "-o", program, "--whole")
    found = run_json("build", model, "-o", program)
    assert whole["tiles"].get("4", 0) <= found["tiles"].get("4", 0) < 2
    assert found["num_turns"] > found["num_steps"]
    assert found["arena_bytes"] < whole["arena_bytes"]
