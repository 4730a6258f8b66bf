"""Tensors spread over several memories: planned, verified, built and run."""

import json

import numpy as np
import pytest

from arenite.planner import planfile
from arenite.runtime import Session
from support.running import random_feeds


def outputs(program):
    with Session(program) as session:
        return session.memories, session.run(random_feeds(session))


@pytest.fixture
def limits(run_json, classifier):
    """A fast memory for half of what the model needs, and a slow one for the rest."""
    half = run_json("plan", classifier)["height"] // 2
    return ("--memory", f"sram={half}", "--memory", "psram=any,read=4,write=6")


def test_a_plan_over_two_memories_holds_and_runs(run, run_json, classifier, limits, tmp_path):
    plan, program, plain = (tmp_path / name for name in ("p.json", "m.arena", "plain.arena"))
    found = run_json("plan", classifier, *limits, "-o", plan)
    sram, psram = found["memories"]
    assert 0 < sram["height"] <= sram["capacity"]
    assert psram["height"] > 0
    assert found["spread"]["least_cost"] <= found["spread"]["cost"]
    assert run("verify", plan, classifier)[0] == 0
    assert run("build", classifier, "--plan", plan, "-o", program)[0] == 0
    assert run("build", classifier, "-o", plain)[0] == 0
    memories, apart = outputs(program)
    _, together = outputs(plain)
    assert [(each.name, each.size) for each in memories] == [
        ("sram", sram["height"]), ("psram", psram["height"])
    ]  # fmt: skip
    for name, array in together.items():
        np.testing.assert_array_equal(apart[name], array)


def test_build_spreads_as_plan_does(run_json, classifier, limits, tmp_path):
    planned = run_json("plan", classifier, *limits)
    built = run_json("build", classifier, *limits, "-o", tmp_path / "m.arena")
    assert built["memories"] == planned["memories"]


def test_the_text_has_a_row_for_each_memory(run, classifier, limits):
    code, out, _ = run("plan", classifier, *limits)
    assert code == 0
    assert "sram " in out
    assert "psram " in out
    assert "for all reads and writes" in out


def test_bare_records_are_spread_too(run_json, tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\n0,0,2,32\n1,0,2,64\n")
    found = run_json("plan", path, "--memory", "a=40", "--memory", "b=any")
    assert [memory["height"] for memory in found["memories"]] == [32, 64]


def test_a_plan_whose_records_moved_is_stale(run, refused, classifier, limits, tmp_path):
    path = tmp_path / "p.json"
    run("plan", classifier, *limits, "-o", path)
    document = json.loads(path.read_text())
    document["records"].pop()
    path.write_text(json.dumps(document))
    assert "error: " in refused("verify", path, classifier)


def test_the_memories_of_a_plan_file_are_those_stated(run, classifier, limits, tmp_path):
    path = tmp_path / "p.json"
    run("plan", classifier, *limits, "-o", path)
    assert [memory.name for memory in planfile.read(path).problem.memories] == ["sram", "psram"]


def test_too_little_memory_is_refused(refused, classifier):
    said = refused("plan", classifier, "--memory", "a=64", "--memory", "b=65")
    assert "in memory 'b'" in said


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        ("sram", "is not NAME=SIZE"),
        ("=4", "is not NAME=SIZE"),
        ("sram=lots", "lots"),
        ("sram=4,read", "a byte cannot cost ''"),
        ("sram=4,speed=2", "is not NAME=SIZE"),
        ("sram=4,read=-1", "a byte cannot cost '-1'"),
        ("sram=4,write=inf", "a byte cannot cost 'inf'"),
        ("sram=4,read=1,read=2", "is not NAME=SIZE"),
    ],
)
def test_a_memory_is_stated_in_one_way(misused, classifier, memory, reason):
    assert reason in " ".join(misused("plan", classifier, "--memory", memory).split())


def test_names_are_given_once_and_capacity_not_at_all(misused, classifier):
    twice = ("--memory", "a=1KiB", "--memory", "a=2KiB")
    assert "given twice" in misused("plan", classifier, *twice)
    beside = misused("plan", classifier, "--memory", "a=1KiB", "--capacity", "1KiB")
    assert "--capacity" in beside
