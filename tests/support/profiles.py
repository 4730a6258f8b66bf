"""The records live at each step, by definition: a judge of faster ways to their facts."""

from arenite.planner.placement.problem import Problem


def profiles(problem: Problem) -> list[list[int]]:
    """Return the indices live at each step, largest first, equal sizes by index."""
    records = problem.records
    return [
        sorted(
            (i for i, record in enumerate(records) if record.start <= step < record.end),
            key=lambda i: -records[i].size,
        )
        for step in range(problem.num_steps)
    ]


def positional_maxima_of(problem: Problem) -> list[int]:
    """Return the largest of all sizes that come first in a profile, second, and so on."""
    sizes = [[problem.records[i].size for i in profile] for profile in profiles(problem)]
    ranks = range(max(map(len, sizes), default=0))
    return [max(ranked[rank] for ranked in sizes if rank < len(ranked)) for rank in ranks]
