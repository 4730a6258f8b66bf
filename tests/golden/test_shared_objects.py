"""Assignments and totals that are published or were computed by others than this code."""

import json
from pathlib import Path
from typing import Any

import pytest

from arenite.planner.errors import MissingDependencyError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.strategies import find
from arenite.strategies.share.mxnet import Mxnet
from arenite.strategies.share.objects import lay_end_to_end, positional_maxima
from support.brute_force import profiles

OFFSETS = json.loads(Path(__file__).with_name("offsets.json").read_text())["instances"]
GOLDEN = json.loads(Path(__file__).with_name("shared_objects.json").read_text())
INSTANCES = GOLDEN["instances"]


def problem_of(name: str) -> Problem:
    source = INSTANCES[name] if "records" in INSTANCES[name] else OFFSETS[name]
    return Problem(
        tuple(
            UsageRecord(str(index), size, start, end)
            for index, (size, start, end) in enumerate(source["records"])
        )
    )


def plan_of(name: str, label: str) -> Plan:
    strategy = Mxnet(match_ranges=(16,)) if label == "mxnet 16" else find(label)
    problem = problem_of(name)
    try:
        plan = strategy(problem)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    verify(problem, plan)
    return plan


@pytest.mark.parametrize("name", INSTANCES)
def test_the_lower_bound_of_objects_is_the_published_one(name: str) -> None:
    assert sum(positional_maxima(problem_of(name).records)) == INSTANCES[name]["lower_bound"]


@pytest.mark.parametrize(
    ("name", "label"),
    [(name, label) for name, instance in INSTANCES.items() for label in instance["totals"]],
)
def test_the_total_is_the_published_one(name: str, label: str) -> None:
    assert plan_of(name, label).height == INSTANCES[name]["totals"][label]


@pytest.mark.parametrize(
    ("name", "label"),
    [(name, label) for name, instance in INSTANCES.items() for label in instance["objects"]],
)
def test_the_objects_are_the_published_ones(name: str, label: str) -> None:
    objects = plan_of(name, label).objects
    assert objects is not None
    assert list(objects.assignment) == INSTANCES[name]["objects"][label]["assignment"]
    assert list(objects.sizes) == INSTANCES[name]["objects"][label]["sizes"]


@pytest.mark.parametrize("name", GOLDEN["profiles"])
def test_profiles_and_positional_maxima_are_the_published_ones(name: str) -> None:
    problem = problem_of(name)
    assert profiles(problem) == GOLDEN["profiles"][name]["profiles"]
    assert positional_maxima(problem.records) == GOLDEN["profiles"][name]["positional_maxima"]


@pytest.mark.parametrize("layout", GOLDEN["layouts"])
def test_objects_are_laid_out_as_published(layout: dict[str, Any]) -> None:
    records = [UsageRecord(str(i), 1, 0, 1) for i in range(len(layout["assignment"]))]
    starts = lay_end_to_end(records, layout["assignment"], layout["sizes"])
    assert [starts[index] for index in layout["assignment"]] == layout["offsets"]
