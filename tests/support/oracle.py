"""A painted grid of steps and bytes: an independent judge of plans."""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord


def paint(problem: Problem, plan: Plan) -> None:
    """Paint each record's bytes at each of its steps; fail where paint is already."""
    assert len(plan.heights) == len(plan.lower_bounds) == len(problem.memories)
    for number, memory in enumerate(problem.memories):
        _paint_memory(problem, plan, memory.name, plan.heights[number], plan.lower_bounds[number])


def _paint_memory(
    problem: Problem, plan: Plan, memory: str, height: int, lower_bound: int
) -> None:
    grid = np.zeros((problem.num_steps, height), bool)
    owners: dict[tuple[int, int], list[int]] = {}
    may_overlap = any(record.overlaps for record in problem.records)
    for index, (record, offset) in enumerate(zip(problem.records, plan.offsets, strict=True)):
        if record.memory != memory:
            continue
        assert offset >= 0
        assert offset % record.alignment == 0
        assert record.offset is None or record.offset == offset
        cells = grid[record.start : record.end, offset : offset + record.size]
        assert cells.shape == (record.end - record.start, record.size), "outside the arena"
        needed = _needed(record)
        assert may_overlap or not (cells & needed).any(), "two records share a byte at a step"
        cells |= needed
        if may_overlap:
            for step in range(record.start, record.end):
                for byte in range(offset, offset + record.size):
                    owners.setdefault((step, byte), []).append(index)
    for (_, byte), sharing in owners.items():
        for a, b in permutations(sharing, 2):
            assert _may_share(problem, plan, a, b, byte) or _may_share(problem, plan, b, a, byte)
    tops = [
        offset + record.size
        for record, offset in zip(problem.records, plan.offsets, strict=True)
        if record.memory == memory
    ]
    assert height == max(tops, default=0), "the arena does not end at its highest byte"
    if not may_overlap:
        assert lower_bound >= max(grid.sum(axis=1), default=0)


def _needed(record: UsageRecord) -> NDArray[np.bool_]:
    """Return which of a record's bytes it needs at each of its steps."""
    needed = np.zeros((record.end - record.start, record.size), bool)
    for stair in record.outline:
        rows = slice(stair.start - record.start, stair.end - record.start)
        columns = slice(stair.offset, stair.offset + stair.size)
        needed[rows, columns] = True
    return needed if record.outline else ~needed


def _may_share(problem: Problem, plan: Plan, result: int, operand: int, byte: int) -> bool:
    """Tell whether a byte is among the result's last and the operand's first few."""
    allowed = {overlap.record: overlap.size for overlap in problem.records[result].overlaps}
    size = allowed.get(problem.records[operand].name, 0)
    above = plan.offsets[result] + problem.records[result].size - byte
    below = byte - plan.offsets[operand]
    return above <= size and below < size
