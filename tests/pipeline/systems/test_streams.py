"""A model on a stream as one of a system: it goes on from hop to hop beside the others."""

from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.hops import stream_model
from arenite.pipeline.making.programs import session_by_plan
from arenite.pipeline.session import Session
from arenite.pipeline.systems import plan_system
from arenite.runtime import System
from arenite.runtime.rewrites import Hops, Kernels
from support.tiny_onnx import parse, save, with_random_weights

FRONT = "(float[1,4,5] sound) => (frames) <float[6,4,1] w> {frames = Conv(sound, w)}"
WORDS = """(float[1,6,24] frames) => (y) <float[8,6,3] w, float[4,8,5] v>
  { a = Conv(frames, w) b = Relu(a) c = Conv(b, v) y = GlobalAveragePool(c) }"""
DESCRIPTION = """
schedule = ["front", "words", "other"]
[models.front]
path = "front.onnx"
[models.words]
path = "words.onnx"
axis = "frames:2"
hop = 5
[models.other]
path = "front.onnx"
"""


def written(folder: Path, more: str = "") -> Path:
    for name, text in (("front", FRONT), ("words", WORDS)):
        save(folder, with_random_weights(parse(text))).rename(folder / f"{name}.onnx")
    path = folder / "system.toml"
    path.write_text(DESCRIPTION + more, encoding="utf-8")
    return path


@pytest.mark.parametrize("more", ["", '[[connect]]\nfrom = "front.frames"\nto = "words.frames"\n'])
def test_a_model_of_a_system_runs_on_a_stream(tmp_path, more):
    path = written(tmp_path, more)
    plan_system(path).write(tmp_path / "system.arena")
    reading = Reading(hops=Hops("frames", 2, 5))
    alone = stream_model(tmp_path / "words.onnx", reading, kernels=Kernels.DIRECT).built
    sound = np.random.default_rng(0).standard_normal((1, 4, 60)).astype(np.float32)
    with (
        System(tmp_path / "system.arena", poison=0xFF) as system,
        session_by_plan(alone.compiled, alone.plan) as stream,
    ):
        for start in range(0, 60, 5):
            system.finish()
            frames = system["front"].run({"sound": sound[..., start : start + 5]})["frames"]
            made = system["words"].run({} if more else {"frames": frames})
            expected = stream.run({"frames": frames})["y"]
            np.testing.assert_array_equal(made["y"], expected)
            system["other"].run({"sound": -sound[..., start : start + 5]})


AT_ONCE = """
schedule = [{ at_once = ["long", { repeat = ["words"] }] }]
[models.long]
path = "words.onnx"
[models.words]
path = "words.onnx"
axis = "frames:2"
hop = 5
"""


@pytest.mark.parametrize("first", ["long", "words"])
def test_hops_of_a_stream_run_between_the_steps_of_a_longer_model(tmp_path, first):
    """The new rows of a hop lie beside states, and other models at once touch neither."""
    path = written(tmp_path)
    text = AT_ONCE if first == "long" else AT_ONCE.replace(
        '"long", { repeat = ["words"] }', '{ repeat = ["words"] }, "long"'
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    planned = plan_system(path)
    assert planned.lower_bound <= planned.height
    planned.write(tmp_path / "system.arena")
    reading = Reading(hops=Hops("frames", 2, 5))
    hop = stream_model(tmp_path / "words.onnx", reading, kernels=Kernels.DIRECT).built
    frames = np.random.default_rng(0).standard_normal((1, 6, 300)).astype(np.float32)
    with (
        Session(tmp_path / "words.onnx") as alone,
        System(tmp_path / "system.arena", poison=0xFF) as system,
        session_by_plan(hop.compiled, hop.plan) as stream,
    ):
        starts = iter(range(0, 300, 5))
        for _ in range(3):
            system.finish()
            whole = {"frames": frames[..., :24]}
            system["long"].start(whole)
            done = False
            while not done:
                start = next(starts)
                new = {"frames": frames[..., start : start + 5]}
                np.testing.assert_array_equal(system["words"].run(new)["y"], stream.run(new)["y"])
                done = system["long"].advance(1)
            np.testing.assert_array_equal(system["long"].outputs["y"].view, alone.run(whole)["y"])
