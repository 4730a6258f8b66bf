import math

import pytest

from arenite.planner.errors import ModelError
from arenite.planner.importers import read
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.memories import (
    CostedMemory,
    Traffic,
    assigned,
    cost_of,
    excess_of,
    traffic_of,
)
from arenite.planner.tensors import Memory
from support.tiny_onnx import parse, save

CHAIN = """(float[8] x) => (float[8] y) { a = Relu(x) b = Add(a, a) y = Add(a, b) }"""


@pytest.mark.parametrize("costs", [(-1, 1), (1, math.inf), (math.nan, 1)])
def test_costs_are_finite_and_not_negative(costs):
    with pytest.raises(ModelError, match="memory 'm': a byte costs"):
        CostedMemory(Memory("m"), *costs)


def test_each_step_reads_and_writes_its_tensors_once(tmp_path):
    source = read(save(tmp_path, parse(CHAIN)), aliases=())
    found = dict(
        zip(
            (record.name for record in source.problem.records),
            traffic_of(source.problem, source.program),
            strict=True,
        )
    )
    assert found == {
        "x": Traffic(32, 0), "a": Traffic(64, 32), "b": Traffic(32, 32), "y": Traffic(0, 32),
    }  # fmt: skip


def test_records_without_a_program_are_written_and_read_once():
    problem = Problem.of([UsageRecord("a", 7, 0, 1)])
    assert traffic_of(problem, None) == (Traffic(7, 7),)
    assert Traffic(2, 3).cost_in(CostedMemory(Memory(), 10, 100)) == 320


def test_every_record_is_assigned_to_a_memory_that_there_is():
    problem = Problem.of([UsageRecord("a", 7, 0, 1)])
    memories = (Memory("one"), Memory("two", alignment=16))
    found = assigned(problem, memories, {"a": "two"})
    assert (found.records[0].memory, found.records[0].alignment) == ("two", 16)
    for wrong in ({}, {"a": "three"}):
        with pytest.raises(ModelError, match="record 'a' is assigned to an unknown memory"):
            assigned(problem, memories, wrong)


def test_the_excess_is_what_costs_beyond_one_a_byte_add():
    records = [UsageRecord("a", 7, 0, 1, memory="fast"), UsageRecord("b", 7, 0, 1, memory="slow")]
    kinds = [CostedMemory(Memory("fast"), 0.5, 1), CostedMemory(Memory("slow"), 4, 6)]
    problem = Problem(tuple(records), (), tuple(each.memory for each in kinds))
    traffic = [Traffic(100, 10), Traffic(100, 10)]
    assert excess_of(problem, kinds, traffic) == 100 * 3 + 10 * 5
    assert cost_of(problem, kinds, traffic) == 50 + 10 + 400 + 60
