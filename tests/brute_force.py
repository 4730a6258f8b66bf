"""The lowest height of a handful of records, by trying every order."""

from arenite.planner.problem import Problem


def lowest_height(problem: Problem) -> int:
    """Return the height of a lowest plan; for problems without fixed offsets.

    Take a lowest plan and place its records in the order of their offsets, each at the
    lowest aligned offset above the records it meets. By induction none lies higher than in
    the plan: what it meets lay below it there and lies no higher now. So some order gives
    a lowest plan, whatever the alignments. Orders that are no lower than the best so far
    are cut short.
    """
    records = problem.records
    best = sum(record.size + record.alignment for record in records)

    def extend(placed: tuple[tuple[int, int], ...], height: int) -> None:
        nonlocal best
        if height >= best:
            return
        left = set(range(len(records))) - {index for index, _ in placed}
        if not left:
            best = height
        for index in sorted(left):
            record = records[index]
            top = 0
            for other, end in placed:
                if records[other].start < record.end and record.start < records[other].end:
                    top = max(top, end)
            end = -(-top // record.alignment) * record.alignment + record.size
            extend((*placed, (index, end)), max(height, end))

    extend((), 0)
    return best if records else 0
