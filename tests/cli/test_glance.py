"""`arenite MODEL`: a file in the place of a command."""

import shlex

import pytest

from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[n,4,16,16] x) => (y) <float[8,4,3,3] w, float[4,8,3,3] v>
{c = Conv<pads=[1,1,1,1]>(x, w) r = Tanh(c) d = Conv<pads=[1,1,1,1]>(r, v) y = Add(d, x)}"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return save(tmp_path, with_random_weights(parse(NETWORK))).name


def test_a_model_alone_is_planned_and_told_of(run, run_json, model):
    said = run_json(model, "--dim", "n=1")
    planned = run_json("plan", model, "--dim", "n=1")
    for key in ("height", "lower_bound", "naive", "target", "optimal"):
        assert said[key] == planned[key], key
    code, out, err = run(model, "--dim", "n=1")
    assert (code, err) == (0, "")
    assert f"{said['height']:,} B" in out
    assert said["binds"] in out


def test_the_two_commands_to_try_next_run(run, model, tmp_path):
    code, out, _ = run(model, "--dim", "n=1")
    assert code == 0
    commands = [shlex.split(line) for line in out.partition("Try next:")[2].splitlines() if line]
    assert [command[:2] for command in commands] == [["arenite", "inspect"], ["arenite", "build"]]
    for command in commands:
        assert run(*command[1:])[0] == 0
    assert (tmp_path / "tiny.arena").is_file()


def test_what_is_open_is_asked_for(refused, model):
    assert "--dim n=1" in refused(model)


def test_records_alone_are_compared_and_planned(run_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.csv").write_text("id,lower,upper,size\na,0,3,8\nb,3,4,8\n")
    said = run_json("some.csv")
    assert (said["naive"], said["height"], said["binds"]) == (16, 8, "")
    assert said["next"] == ["arenite compare some.csv", "arenite plan some.csv -o some.plan.json"]


def test_a_model_that_is_not_there_is_named_and_a_wrong_command_is_usage(refused, run):
    assert "nothere.onnx: cannot be read" in refused("nothere.onnx")
    code, _, err = run("nothere")
    assert code == 2
    assert "No such command 'nothere'" in err


def test_a_command_stays_one_though_a_file_has_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strategies").touch()
    code, out, _ = run("strategies")
    assert code == 0
    assert "greedy-by-size" in out
