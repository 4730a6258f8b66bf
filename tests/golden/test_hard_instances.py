"""Heights on instances that separate good strategies from bad; they lie beside the checkout."""

import csv
import json
from pathlib import Path

import pytest

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.strategies import find
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.strip_packing import StripPacking
from support.shared_material import shared

INSTANCES = json.loads(Path(__file__).with_name("hard_instances.json").read_text())["instances"]


def read(file_name: str) -> Problem:
    with shared(f"instances/minimalloc/{file_name}").open(newline="") as file:
        return Problem(
            tuple(
                UsageRecord(row["id"], int(row["size"]), int(row["lower"]), int(row["upper"]))
                for row in csv.DictReader(file)
            )
        )


@pytest.mark.parametrize("file_name", INSTANCES)
def test_the_lower_bound_is_the_known_one(file_name: str) -> None:
    assert read(file_name).lower_bound == INSTANCES[file_name]["lower_bound"]


@pytest.mark.parametrize(
    ("file_name", "label"),
    [(name, label) for name, instance in INSTANCES.items() for label in instance["heights"]],
)
def test_the_height_is_the_known_one(file_name: str, label: str) -> None:
    problem = read(file_name)
    raw_time = label == "strip-packing raw-time"
    strategy = StripPacking(raw_time=True) if raw_time else find(label)
    plan = strategy(problem)
    verify(problem, plan)
    assert plan.height == INSTANCES[file_name]["heights"][label]


@pytest.mark.parametrize("file_name", [name for name in INSTANCES if name[0].islower()])
def test_cp_sat_reaches_the_bound_of_the_small_ones(file_name: str) -> None:
    pytest.importorskip("ortools")
    problem = read(file_name)
    plan = CpSat()(problem)
    verify(problem, plan)
    assert plan.optimal
    assert plan.height == INSTANCES[file_name]["lower_bound"]
