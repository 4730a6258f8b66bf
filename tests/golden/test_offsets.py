"""Heights and offsets that come from elsewhere; `offsets.json` says which were computed."""

import json
from pathlib import Path
from typing import Any

import pytest

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import Strategy
from arenite.planner.placement.verification import verify
from arenite.strategies import find
from arenite.strategies.place.strip_packing import StripPacking

INSTANCES = json.loads(Path(__file__).with_name("offsets.json").read_text())["instances"]


def strategy_of(label: str) -> Strategy:
    return StripPacking(raw_time=True) if label == "strip-packing raw-time" else find(label)


def problem_of(instance: dict[str, Any]) -> Problem:
    return Problem(
        tuple(
            UsageRecord(str(index), size, start, end)
            for index, (size, start, end) in enumerate(instance["records"])
        )
    )


@pytest.mark.parametrize("name", INSTANCES)
def test_the_lower_bound_is_the_known_one(name: str) -> None:
    assert problem_of(INSTANCES[name]).lower_bound == INSTANCES[name]["lower_bound"]


@pytest.mark.parametrize(
    ("name", "label"),
    [(name, label) for name, instance in INSTANCES.items() for label in instance["heights"]],
)
def test_the_height_is_the_known_one(name: str, label: str) -> None:
    problem = problem_of(INSTANCES[name])
    plan = strategy_of(label)(problem)
    verify(problem, plan)
    assert plan.height == INSTANCES[name]["heights"][label]


@pytest.mark.parametrize(
    ("name", "label"),
    [(name, label) for name, instance in INSTANCES.items() for label in instance["offsets"]],
)
def test_the_offsets_are_the_known_ones(name: str, label: str) -> None:
    plan = strategy_of(label)(problem_of(INSTANCES[name]))
    assert list(plan.offsets) == INSTANCES[name]["offsets"][label]
