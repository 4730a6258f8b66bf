"""A painted grid of steps and bytes: an independent judge of plans."""

import numpy as np

from arenite.planner.plan import Plan
from arenite.planner.problem import Problem


def paint(problem: Problem, plan: Plan) -> None:
    """Paint each record's bytes at each of its steps; fail where paint is already."""
    grid = np.zeros((problem.num_steps, plan.height), bool)
    for record, offset in zip(problem.records, plan.offsets, strict=True):
        assert offset >= 0
        assert offset % record.alignment == 0
        assert record.offset is None or record.offset == offset
        cells = grid[record.start : record.end, offset : offset + record.size]
        assert cells.shape == (record.end - record.start, record.size), "outside the arena"
        assert not cells.any(), "two records share a byte at a step"
        cells[:] = True
    if plan.height:
        assert grid[:, -1].any(), "the arena ends above its highest byte"
    assert plan.lower_bound >= max(grid.sum(axis=1), default=0)
