"""One model has one height and the same bytes, whichever door it enters by."""

import json
from pathlib import Path

import onnx
import pytest

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_model
from support.command import main
from support.running import MANY_KINDS
from support.shared_material import SHARED
from support.tiny_onnx import parse, save, with_random_weights

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
IN_BANDS = """(float[1,3,224,224] x) => (y)
<float[32,3,3,3] w, float[32,32,3,3] v, float[8,32,3,3] u>
{ a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1]>(a, v)
  c = Relu(b) d = Conv<strides=[2,2], pads=[1,1,1,1]>(c, u) y = GlobalAveragePool(d) }"""
"""Steps hand each other more than a cache holds: it is built in bands of rows."""


def models(folder):
    yield save(folder / "kinds", with_random_weights(parse(MANY_KINDS)))
    yield save(folder / "bands", with_random_weights(parse(IN_BANDS)))
    yield LIGHT / "light_squeezenet.onnx"
    shared = SHARED / "models/tflite"
    yield from (shared / f"{name}.tflite" for name in ("vww_96_int8", "person_detect"))


def run(capsys, *words):
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("index", range(5), ids=["kinds", "bands", "squeezenet", "vww", "person"])
def test_every_door_gives_the_same_height_and_the_same_bytes(index, tmp_path, capsys):
    for name in ("kinds", "bands"):
        (tmp_path / name).mkdir()
    model = list(models(tmp_path))[index]
    if not model.exists():
        pytest.skip("../shared is absent")
    by_api, by_cli = tmp_path / "api.arena", tmp_path / "cli.arena"

    built = arenite.build(model, by_api)
    said = run(capsys, "build", model, "-o", by_cli)
    assert by_api.read_bytes() == by_cli.read_bytes()
    assert (built.height, built.arena_bytes) == (said["height"], said["arena_bytes"])

    heights = {
        arenite.plan(model).height,
        arenite.fit_frontier(model)[0].height,
        run(capsys, "plan", model)["height"],
        run(capsys, "inspect", model)["height"],
        run(capsys, "compare", model, "--strategy", "best", "--no-bands")["models"][0]["height"],
        run(capsys, model)["height"],
    }
    assert heights == {built.height}

    with arenite.Session(model) as of_model, arenite.Session(by_cli) as of_file:
        assert of_model.flatbuffer() == of_file.flatbuffer()
        assert of_model.arena_bytes == of_file.arena_bytes == built.arena_bytes


def test_a_budget_gives_the_same_program_by_the_library_and_the_command(tmp_path, capsys):
    model = LIGHT / "light_squeezenet.onnx"
    small = arenite.fit(model, budget="50%")
    small.save(tmp_path / "api.arena")
    said = run(capsys, "fit", model, "--budget", "50%", "-o", tmp_path / "cli.arena")
    assert small.height == said["height"]
    assert (tmp_path / "api.arena").read_bytes() == (tmp_path / "cli.arena").read_bytes()
    small.save(tmp_path / "plan.json")
    arenite.build(model, tmp_path / "planned.arena", plan=tmp_path / "plan.json")
    assert (tmp_path / "planned.arena").read_bytes() == (tmp_path / "api.arena").read_bytes()


def test_c_source_has_the_height_of_its_plan(tmp_path, capsys):
    model = save(tmp_path, with_random_weights(parse(MANY_KINDS.replace("Tanh", "Relu"))))
    planned = arenite.plan(model, target="c")
    said = run(capsys, "plan", model, "--target", "c")
    assert planned.height == said["height"]
    built = build_model(model, Reading())
    assert built.arena_bytes == arenite.plan(model).height
