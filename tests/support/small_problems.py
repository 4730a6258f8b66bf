"""Problems written down in one line."""

from arenite.planner.placement.problem import Problem, UsageRecord


def problem_of(*records: tuple[int, int, int], alignment: int = 1) -> Problem:
    """Return records of (size, start, end), named "a", "b" and so on."""
    return Problem(
        tuple(
            UsageRecord(chr(ord("a") + index), size, start, end, alignment)
            for index, (size, start, end) in enumerate(records)
        )
    )
