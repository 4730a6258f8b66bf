"""Plans in bands: written by `fit`, checked, looked at, and built from."""

import json
from pathlib import Path

import jsonschema
import onnx
import pytest

from arenite.runtime.program import touching
from arenite.strategies.bands.chains import ChainsSearch
from arenite.strategies.bands.regions import Regions
from bench.zoo.edge import bert_layers
from support.command_models import EXPANDING
from support.tiny_onnx import parse, save, with_random_weights
from support.trading import step_file

SCHEMA = Path(__file__).parents[2] / "docs" / "plan-file.schema.json"
NETWORK = """(float[1,3,24,24] x) => (y)
<float[8,3,3,3] w, float[8,1,3,3] d, float[8,8,1,1] p, float[4,8] f>
{ a = Conv<strides=[2,2], pads=[0,0,1,1]>(x, w) b = Relu(a)
  c = Conv<group=8, pads=[1,1,1,1]>(b, d) e = Conv(c, p) g = Add(e, b)
  h = MaxPool<kernel_shape=[2,2], strides=[2,2]>(g)
  i = GlobalAveragePool(h) j = Flatten(i) y = Gemm<transB=1>(j, f) }"""
BUDGET = "70%"


@pytest.fixture
def network(tmp_path):
    return save(tmp_path, with_random_weights(parse(NETWORK)))


@pytest.fixture
def planned(run_json, network, tmp_path):
    """The plan file of the network in bands."""
    path = tmp_path / "bands.json"
    found = run_json("fit", network, "--budget", BUDGET, "-o", path)
    assert found["regions"]
    assert found["output"] == str(path)
    return path


@pytest.fixture
def program(run_json, network, tmp_path):
    """The program of the same search."""
    path = tmp_path / "fit.arena"
    run_json("fit", network, "--budget", BUDGET, "-o", path)
    return path


def test_a_plan_says_which_rows_each_turn_makes_and_conforms_to_the_schema(planned):
    document = json.loads(planned.read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    bands = document["bands"]
    assert bands["regions"]
    assert len(bands["turns"]) == len(document["order"]) > len(bands["order"])
    made = [each for each in bands["turns"] if each["rows"]]
    assert all(each["reads"] and each["writes"] for each in made)
    assert document["lower_bound"] <= document["height"]


def test_a_plan_is_valid_alone_and_for_its_model(run_json, planned, network):
    assert run_json("verify", planned)["valid"]
    assert run_json("verify", planned, network)["model"] == str(network)


def test_the_program_built_by_a_plan_is_that_of_fit_to_the_byte(
    run_json, planned, program, network, tmp_path
):
    built = tmp_path / "built.arena"
    found = run_json("build", network, "--plan", planned, "-o", built)
    assert built.read_bytes() == program.read_bytes()
    shown = run_json("inspect", built)
    assert (found["num_steps"], found["num_turns"]) == (shown["num_steps"], shown["num_turns"])
    assert found["num_turns"] > found["num_steps"] == sum(found["operators"].values())


CLASSES = """(float[1,3,16,16] x) => (int64[1,8,8] y)
<float[8,3,3,3] w, float[21,8,1,1] o>
{ a = Conv<strides=[2,2], pads=[0,0,1,1]>(x, w) b = Conv(a, o)
  y = ArgMax<axis=1, keepdims=0>(b) }"""
"""The class of each pixel: the result has lost the axis of channels."""


def test_a_program_whose_result_has_lost_an_axis_is_valid(run_json, tmp_path):
    network, built = save(tmp_path, with_random_weights(parse(CLASSES))), tmp_path / "built.arena"
    least = min(each["height"] for each in run_json("fit", network)["frontier"])
    run_json("fit", network, "--budget", least, "-o", built)
    assert run_json("verify", built)["valid"]


@pytest.mark.parametrize("are_regions", [False, True], ids=["of a few steps", "of regions"])
def test_strips_are_made_again_from_a_plan(run_json, tmp_path, monkeypatch, are_regions):
    if are_regions:
        monkeypatch.setattr(ChainsSearch, "is_of_use", False)
    else:
        monkeypatch.setattr(Regions, "widths", lambda *_: ())
    network = save(tmp_path, with_random_weights(parse(EXPANDING)))
    least = min(each["height"] for each in run_json("fit", network)["frontier"])
    plan, fit, built = (tmp_path / each for each in ("plan.json", "fit.arena", "built.arena"))
    run_json("fit", network, "--budget", least, "-o", plan)
    run_json("fit", network, "--budget", least, "-o", fit)
    bands = json.loads(plan.read_text())["bands"]
    assert any("columns" in each for each in bands["regions"]) if are_regions else bands["strips"]
    run_json("verify", plan, network)
    run_json("build", network, "--plan", plan, "-o", built)
    assert built.read_bytes() == fit.read_bytes()


def test_results_over_what_they_replace_are_made_again_from_a_plan(run_json, tmp_path):
    model, plan, one, other = (
        tmp_path / name for name in ("m.onnx", "p.json", "one.arena", "other.arena")
    )
    onnx.save(bert_layers(rows=24, layers=3, features=64), model)
    for path in (plan, one):
        run_json("fit", model, "--budget", "24576", "-o", path)
    run_json("build", model, "--plan", plan, "-o", other)
    assert one.read_bytes() == other.read_bytes()


def test_what_fits_whole_is_an_ordinary_plan(run_json, network, tmp_path):
    path = tmp_path / "whole.json"
    run_json("fit", network, "--budget", "100%", "-o", path)
    assert "bands" not in json.loads(path.read_text())
    assert run_json("verify", path, network)["valid"]


def test_what_a_policy_made_is_no_plan_file(refused, tmp_path):
    said = refused(
        "fit", step_file(tmp_path), "--budget", "80%", "--policy", "offload-prefetch", "--link",
        "1GB/s", "-o", tmp_path / "plan.json",
    )  # fmt: skip
    assert "'offload-prefetch' recomputes or spills tensors" in said
    assert "write a program, -o *.arena" in said
    assert not (tmp_path / "plan.json").exists()


def edited(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def other_regions(document):
    document["bands"]["regions"].pop()


def other_steps(document):
    document["bands"]["order"][0] = "renamed"
    first = document["bands"]["regions"][0]
    first["first"] = (
        "renamed" if first["first"] not in document["bands"]["order"] else first["first"]
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_regions, "the order of the operators is not the model's"),
        (other_steps, "the order must name each of its"),
    ],
)
def test_bands_that_are_not_the_models_are_refused(refused, planned, network, change, words):
    assert words in refused("verify", edited(planned, change), network)


def test_a_program_file_is_verified_and_says_how_it_runs(run, run_json, program, network):
    found = run_json("verify", program)
    assert found["valid"]
    assert found["num_turns"] > found["num_steps"]
    assert run_json("verify", program, network)["model"] == str(network)
    shown = run_json("inspect", program)
    assert shown["height"] == found["height"]
    (region,) = shown["regions"]
    assert region["rows"] >= 1
    assert region["end"] - region["start"] <= shown["num_turns"]
    assert shown["binding"]["load"] == sum(shown["binding"]["live"].values()) <= shown["height"]
    code, out, _ = run("inspect", program)
    assert code == 0
    assert "in bands" in out
    assert "Binds at turn" in out


def test_a_program_that_runs_whole_says_so(run, run_json, network, tmp_path):
    path = tmp_path / "whole.arena"
    run_json("build", network, "-o", path)
    assert run_json("inspect", path)["regions"] == []
    code, out, _ = run("inspect", path)
    assert code == 0
    assert "each whole" in out
    assert run_json("verify", path)["valid"]


def test_a_program_of_another_model_is_refused(refused, program, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    said = refused("verify", program, save(other, with_random_weights(parse(EXPANDING))))
    assert "made of a model with digest" in said


def test_options_of_reading_a_model_are_not_for_a_program(misused, program):
    assert "a program file has its shapes" in misused("verify", program, "--dim", "n=1")
    assert "decides --dim;" in misused("inspect", program, "--dim", "n=1")


def test_a_program_whose_turns_miss_a_row_is_refused(refused, program, monkeypatch):
    def without_one(flatbuffer):
        root = root_of(flatbuffer)
        del root["turns"][1]
        return root

    root_of = touching.root_of
    monkeypatch.setattr("arenite.pipeline.making.program_files.root_of", without_one)
    assert "turn " in refused("verify", program)


def test_a_memory_of_another_size_is_refused(refused, program, monkeypatch):
    def larger(flatbuffer):
        root = root_of(flatbuffer)
        root["memories"][0]["size"] += 64
        return root

    root_of = touching.root_of
    monkeypatch.setattr("arenite.pipeline.making.program_files.root_of", larger)
    assert "B used" in refused("verify", program)
