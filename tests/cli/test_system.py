"""`arenite system`: several models planned, built, verified and run."""

import pytest

from support.small_systems import CONNECTED, write_system
from support.tiny_chains import dense_chain

NAMES = ("detector", "landmarks", "iris")


def test_a_system_is_planned_built_verified_and_run(tmp_path, run, run_json):
    path = write_system(tmp_path, '"detector", "landmarks", "iris"', *NAMES, more=CONNECTED)
    program = tmp_path / "system.arena"
    found = run_json("system", path, "-o", program)
    assert list(found["models"]) == list(NAMES)
    assert found["largest"] <= found["lower_bound"] <= found["height"] < found["sum"]
    assert found["sum"] == sum(found["models"].values())
    assert found["optimal"]
    assert run_json("verify", program)["height"] == found["height"]
    code, out, _ = run("run", program)
    assert code == 0
    assert "iris.gaze" in out
    code, out, _ = run("system", path)
    assert code == 0
    assert "in arenas of their own" in out


def test_a_system_that_cannot_be_is_refused_and_nothing_written(tmp_path, run):
    path = write_system(tmp_path, '"iris", "detector"', "iris", "detector", more=CONNECTED)
    code, _, err = run("system", path, "-o", tmp_path / "system.arena")
    assert code == 1
    assert "connects 'landmarks.crop'" in err
    assert not (tmp_path / "system.arena").exists()
    path = write_system(tmp_path, '"iris"', "iris")
    code, _, err = run("system", path, "--capacity", "1KiB")
    assert code == 1
    assert "1,024 B" in err


def test_a_system_is_exported_as_c(tmp_path, run_json):
    path = write_system(tmp_path, '"detector", "landmarks", "iris"', *NAMES, more=CONNECTED)
    found = run_json("export", path, "--to", "c", "--name", "eyes", "-o", tmp_path / "c")
    assert found["runs"] == ["eyes_detector_run", "eyes_landmarks_run", "eyes_iris_run"]
    assert found["tested"]
    assert (tmp_path / "c" / "eyes.h").is_file()


MEMORIES = """
[memories.fast]
size = 12000

[memories.slow]
size = "any"
read = 4
"""


def test_memories_of_a_system_hold_unless_others_are_given(tmp_path, run, run_json):
    path = write_system(
        tmp_path, "'detector', 'landmarks', 'iris'", *NAMES, more=CONNECTED + MEMORIES
    )
    program = tmp_path / "system.arena"
    found = run_json("system", path, "-o", program)
    assert [each["name"] for each in found["memories"]] == ["fast", "slow"]
    assert found["memories"][0]["height"] <= 12_000
    run_json("verify", program)
    code, _, _ = run("run", program)
    assert code == 0
    given = run_json("system", path, "--memory", "one=64KiB", "--memory", "two=any")
    assert [each["name"] for each in given["memories"]] == ["one", "two"]
    exported = run_json("export", path, "--to", "c", "-o", tmp_path / "c")
    assert list(exported["memories"]) == ["fast", "slow"]
    assert exported["memories"]["fast"] <= 12_000
    export = ("export", path, "-o", tmp_path / "d", "--to")
    for command, expected, words in (
        (("system", path, "--capacity", "1MiB"), 2, "leave out --capacity"),
        (("system", path, "--memory", "one=1KiB"), 1, "'one'"),
        ((*export, "c", "--budget", "1MiB"), 2, "out --budget"),
        ((*export, "tflm"), 1, "one arena; leave out memories"),
    ):
        code, _, err = run(*command)
        assert code == expected
        assert words in " ".join(err.split())
        assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--to", "onnxruntime"), "takes one model; a system is for --to c and --to tflm"),
        (("--to", "c", "--dim", "n=1"), "a system states them for each"),
        (("--to", "c", "--order", "given"), "for one model, not for a system"),
        (("--to", "c", "--budget", "1KiB"), "the budget is 1,024 B, the least arena that bands"),
    ],
)
def test_options_of_single_models_are_refused(tmp_path, run, options, words):
    path = write_system(tmp_path, '"detector"', "detector")
    code, _, err = run("export", path, *options, "-o", tmp_path / "out")
    assert code in (1, 2)
    assert words in " ".join(err.split())
    assert not (tmp_path / "out").exists()


def test_a_system_is_exported_for_tensorflow_lite_micro(tmp_path, run, run_json, without):
    without("tflite_micro")  # heads are then computed
    lines = ["schedule = ['a', 'b']"]
    for name, sizes in (("a", (24, 40, 32)), ("b", (32, 16, 8))):
        (tmp_path / f"{name}.tflite").write_bytes(dense_chain(sizes))
        lines += [f"[models.{name}]", f"path = '{name}.tflite'"]
    path = tmp_path / "pair.toml"
    path.write_text("\n".join((*lines, "[[connect]]", "from = 'a.x2'", "to = 'b.x0'")))
    command = ("export", path, "--to", "tflm", "-o", tmp_path / "out")
    found = run_json(*command, "--header", tmp_path / "pair.h")
    assert (found["copied"], found["measured"], found["tail"]) == (128, False, None)
    assert found["height"] == found["lower_bound"] == found["head"]["planned"]
    assert sorted(each.name for each in (tmp_path / "out").glob("*.tflite")) == [
        "a.tflite", "b.tflite",
    ]  # fmt: skip
    assert "PAIR_HEAD_BYTES" in (tmp_path / "pair.h").read_text()
    code, out, _ = run(*command)
    assert code == 0
    assert "128 B, not copied" in out
    inside = (tmp_path / "out" / "pair.toml", tmp_path / "out" / "a.tflite")
    inside[0].write_text(path.read_text().replace("'b.tflite'", "'../b.tflite'"))
    code, _, err = run("export", inside[0], "--to", "tflm", "-o", tmp_path / "out")
    assert code == 1
    assert f"the input {str(inside[0])!r} is in this folder" in " ".join(err.split())
    path.write_text(path.read_text().replace("'a.tflite'", "'out/a.tflite'"))
    code, _, err = run(*command)
    assert code == 1
    assert f"the input {str(inside[1])!r} is in this folder" in " ".join(err.split())
    path.write_text("\n".join(("schedule = [{ at_once = ['a', 'b'] }]", *lines[1:])))
    code, _, err = run(*command)
    assert code == 1
    assert "run one at a time" in " ".join(err.split())
