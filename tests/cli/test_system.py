"""`arenite system`: several models planned, built, verified and run."""

from support.small_systems import CONNECTED, write_system

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
    assert "1024 B" in err
