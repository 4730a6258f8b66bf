"""Random problems with the short lifetimes of a network."""

import random

from arenite.planner.placement.problem import Problem, UsageRecord


def random_problem(count: int) -> Problem:
    """Return records that live for 1 to 40 steps, the same for the same count.

    There are as many steps as records; sizes are up to 1 MiB, the alignment is 16.
    """
    generator = random.Random(count)
    records = []
    for index in range(count):
        start = generator.randrange(count)
        end = start + generator.randrange(1, 41)
        records.append(UsageRecord(f"t{index}", generator.randrange(1, 1 << 20), start, end, 16))
    return Problem(tuple(sorted(records, key=lambda record: record.start)))
