"""The placement instances in `assets` are those that their seeds give, and hard."""

import pytest

from arenite.planner.importers.csv import read_csv
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import deadline
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from bench.contests import placement
from bench.placement_instances import INSTANCES, MADE, files, main, tiling
from support.contests import rows_of

PATHS = sorted(INSTANCES.glob("*.csv"))
OPEN = {"tiling-220b", "training-90a"}
"""Those on which `optimal` did not reach the bound in ten seconds."""
SLOW = {"tiling-200", "tiling-220a", "training-60b", "training-90b"}
"""Those on which it took more than half a second."""


def test_the_files_are_what_the_seeds_give(tmp_path):
    assert main([str(tmp_path)]) == 0
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in PATHS} == dict(files())


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_an_instance_is_small_and_hard_for_greedy_by_size(path):
    problem = read_csv(path)
    assert 100 <= len(problem.records) <= 400
    assert problem.capacity == problem.lower_bound
    height = GreedyBySize()(problem.with_capacity(None)).height
    assert height >= 1.10 * problem.lower_bound


@pytest.mark.parametrize("name", sorted(MADE.keys() - OPEN - SLOW))
def test_the_exact_solver_reaches_the_bound(name):
    (path,) = INSTANCES.glob(f"{name}.*.csv")
    problem = read_csv(path)
    plan = run(Optimal(max_nodes=None), problem, deadline(60))
    verify(problem, plan)
    assert plan.optimal
    assert plan.height == problem.lower_bound


@pytest.mark.parametrize("seed", range(5))
def test_a_tiling_fills_its_rectangle(seed):
    records = tiling(40, 30, 512, 0.5, seed)
    assert sum(record.size * (record.end - record.start) for record in records) == 30 * 512
    for step in range(30):
        live = [record for record in records if record.start <= step < record.end]
        assert sum(record.size for record in live) == 512


def test_exact_placement_measures_the_instances_of_a_folder_on_top(tmp_path, monkeypatch):
    monkeypatch.setattr(placement, "SHARED", tmp_path / "absent")
    monkeypatch.setattr(placement, "peers", lambda *_: iter(()))
    own, more = tmp_path / "own", tmp_path / "more"
    for folder, name in ((own, "tiling-100.16384.csv"), (more, "cells-24x8.171008.csv")):
        folder.mkdir()
        (folder / name).write_bytes((INSTANCES / name).read_bytes())
    monkeypatch.setattr(placement, "INSTANCES", own)
    rows, _ = rows_of("exact-placement", tmp_path, str(more))
    assert [row["instance"] for row in rows] == ["own/tiling-100.16384", "more/cells-24x8.171008"]
    assert all(row["proved"] == "yes" for row in rows)
